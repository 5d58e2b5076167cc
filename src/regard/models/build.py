"""Settings to model: each builder reads as a picture of the architecture it builds."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

from torch import nn

from regard.attention import positions as encodings
from regard.attention.lookup import Lookup
from regard.attention.multihead import MultiHeadAttention
from regard.attention.scores import SCORES, AttentionScore
from regard.base.errors import SettingsError
from regard.base.special_tokens import PAD
from regard.compute.linear import Linear
from regard.models.translator import Translator
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.decoders import BahdanauDecoder, LuongDecoder
from regard.recurrent.encoder import OneHot, RecurrentEncoder, share_recurrence
from regard.settings.models import RecurrentSettings, TransformerSettings
from regard.settings.recipe import require_known
from regard.transformer import layers as parts
from regard.transformer.decoder import DecoderLayer, TransformerDecoder
from regard.transformer.encoder import ConvolutionalEncoder, ConvolutionalLayer, TransformerEncoder

AnyPositions = TypeVar("AnyPositions", bound=encodings.Positions)
SCALED_DOT = "scaled-dot"  # the score that has kernels of its own


def positions_named(name: str) -> type[encodings.Positions]:
    """Return a kind of positions by the name that settings give it."""
    require_known(name, encodings.POSITIONS, what="model.positions")
    return encodings.POSITIONS[name]


@dataclass(frozen=True, kw_only=True)
class TransformerPlan:
    """The sizes and choices of a Transformer; the defaults are the base model of the paper."""

    layers: int = 6
    decoder_layers: int = 6
    model_dim: int = 512
    heads: int = 8
    feed_forward: int = 2048
    encoder: str = "attention"
    decoder: str = "attention"
    norm_placement: str = "post"
    norm: str = "layer"
    activation: str = "relu"
    positions: str = "sinusoidal"
    sinusoids: str = "interleaved"
    sinusoid_offset: int = 0
    stretched_sinusoids: bool = False
    max_length: int = 512
    reach: int = 16
    kernel: str = "softmax"
    score: str = SCALED_DOT
    window: int | None = None
    convolution_width: int = 3
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    tie: str = "target"
    scaled_embeddings: bool = True
    output_bias: bool = False
    alignment_layer: int = -1

    def __post_init__(self) -> None:
        """Refuse names that no registry has, and parts that do not go together."""
        kind = positions_named(self.positions)
        within_heads = [name for name, score in SCORES.items() if not score.projects_values]
        require_known(self.score, within_heads, what="model.score")
        if self.kernel == "linear" and kind.changes_scores:
            raise SettingsError(
                f'model.kernel = "linear" has no scores that model.positions = "{self.positions}" '
                'could change; use kernel = "softmax".'
            )
        fixed = {
            "kernel": self.kernel == "linear",
            "positions": issubclass(kind, encodings.PairPositions),
        }
        for name, has_own_score in fixed.items():
            if has_own_score and self.score != SCALED_DOT:
                raise SettingsError(
                    f'model.score = "{self.score}" and model.{name} = "{getattr(self, name)}" '
                    f'exclude each other; use score = "{SCALED_DOT}".'
                )

    def translator(self, *, source_vocab: int, target_vocab: int) -> Translator[Any]:
        """Return a fresh encoder-decoder (Vaswani et al. 2017, figure 1)."""
        target_table = self._embedding(target_vocab)
        source_table = self._embedding(source_vocab) if self.tie != "all" else target_table
        if self.tie == "all" and source_vocab != target_vocab:
            raise SettingsError(
                f'model.tie = "all" needs one vocabulary for both languages, but the source has '
                f'{source_vocab} entries and the target {target_vocab}; use tie = "target".'
            )
        return Translator(
            encoder=self._encoder(source_table),
            decoder=TransformerDecoder(
                embedded=self._embedded(target_table),
                layers=[self._decoder_layer() for _ in range(self.decoder_layers)],
                norm=self._last_norm(),
                window=self.window,
                distance_bias=self._positions(encodings.DistanceBias),
                alignment_layer=self.alignment_layer,
            ),
            projection=self._projection(target_table),
        )

    def _encoder(self, table: nn.Embedding) -> nn.Module:
        if self.encoder == "convolutional":
            return ConvolutionalEncoder(
                embedded=self._embedded(table),
                layers=[
                    ConvolutionalLayer(
                        self.model_dim, width=self.convolution_width, dropout=self.dropout
                    )
                    for _ in range(self.layers)
                ],
            )
        return TransformerEncoder(
            embedded=self._embedded(table),
            layers=[self._self_layer() for _ in range(self.layers)],
            norm=self._last_norm(),
            window=self.window,
            distance_bias=self._positions(encodings.DistanceBias),
        )

    def _self_layer(self) -> parts.SelfAttentionLayer:
        return parts.SelfAttentionLayer(
            attention=self._self_attention(),
            attention_residual=self._residual(),
            feed_forward=self._feed_forward(),
            feed_forward_residual=self._residual(),
        )

    def _decoder_layer(self) -> DecoderLayer:
        recurrent = self.decoder == "ssru"
        return DecoderLayer(
            self_attention=parts.RecurrentUnit(self.model_dim)
            if recurrent
            else self._self_attention(),
            self_residual=self._residual(),
            cross_attention=MultiHeadAttention(
                model_dim=self.model_dim,
                heads=self.heads,
                dropout=self.attention_dropout,
                score=self._score(),
            ),
            cross_residual=self._residual(),
            feed_forward=self._feed_forward(),
            feed_forward_residual=self._residual(),
        )

    def _self_attention(self) -> MultiHeadAttention:
        return MultiHeadAttention(
            model_dim=self.model_dim,
            heads=self.heads,
            dropout=self.attention_dropout,
            positions=self._positions(encodings.PairPositions)
            or self._positions(encodings.RotatedPositions),
            linear=self.kernel == "linear",
            score=self._score(),
        )

    def _feed_forward(self) -> parts.FeedForward:
        return parts.FeedForward(
            self.model_dim,
            hidden=self.feed_forward,
            activation=self.activation,
            dropout=self.activation_dropout,
        )

    def _residual(self) -> parts.Residual:
        return parts.Residual(
            self.model_dim,
            norm=self.norm,
            pre_norm=self.norm_placement == "pre",
            dropout=self.dropout,
        )

    def _last_norm(self) -> nn.Module | None:
        """Return the norm after the last layer, which pre-norm layers leave undone."""
        return parts.NORMS[self.norm](self.model_dim) if self.norm_placement == "pre" else None

    def _embedded(self, table: nn.Embedding) -> parts.Embedded:
        return parts.Embedded(
            table,
            positions=self._positions(encodings.AddedPositions),
            scaled=self.scaled_embeddings,
            dropout=self.dropout,
        )

    def _embedding(self, vocab: int) -> nn.Embedding:
        table = nn.Embedding(vocab, self.model_dim, padding_idx=PAD)
        nn.init.normal_(table.weight, std=self.model_dim**-0.5)
        nn.init.zeros_(table.weight[PAD])
        return table

    def _projection(self, table: nn.Embedding) -> nn.Linear:
        projection = Linear(self.model_dim, table.num_embeddings, bias=self.output_bias)
        nn.init.normal_(projection.weight, std=self.model_dim**-0.5)
        if self.output_bias:
            nn.init.zeros_(projection.bias)
        if self.tie != "none":  # Press & Wolf 2017
            projection.weight = table.weight
        return projection

    def _positions(self, place: type[AnyPositions]) -> AnyPositions | None:
        """Return fresh positions, if they are of those that act in this place."""
        kind = encodings.POSITIONS[self.positions]
        if not issubclass(kind, place):
            return None
        options = {
            field.name: getattr(self, field.name) for field in fields(encodings.PositionOptions)
        }
        try:
            return cast(AnyPositions, kind.build(encodings.PositionOptions(**options)))
        except ValueError as error:
            raise SettingsError(f'model.positions = "{self.positions}": {error}.') from error

    def _score(self) -> AttentionScore | None:
        """Return the score of every pair; None for the scaled dot product, which has kernels."""
        if self.score == SCALED_DOT:
            return None
        head_dim = self.model_dim // self.heads
        return SCORES[self.score](query_dim=head_dim, key_dim=head_dim)


def build_translator(
    settings: RecurrentSettings | TransformerSettings, *, source_vocab: int, target_vocab: int
) -> Translator[Any]:
    """Return a fresh translator; the one place where a model family is chosen."""
    return TRANSLATORS[settings.family](
        settings, source_vocab=source_vocab, target_vocab=target_vocab
    )


def build_recurrent_translator(
    settings: RecurrentSettings, *, source_vocab: int, target_vocab: int
) -> Translator[Any]:
    """Return a recurrent encoder-decoder, with attention unless it is set to "none"."""
    require_known(settings.attention, ["none", *SCORES], what="model.attention")
    encoder = RecurrentEncoder(
        embedding=_embedding(settings, source_vocab),
        stack=_stack(settings, source_vocab, bidirectional=settings.bidirectional),
        dropout=settings.dropout,
    )
    return RECURRENT_DECODERS[settings.decoder](settings, encoder, target_vocab)


def _luong_translator(
    settings: RecurrentSettings, encoder: RecurrentEncoder, vocab: int
) -> Translator[Any]:
    """Return a translator that looks back after each state update."""
    hidden, feeds = settings.hidden, settings.input_feeding
    attends = settings.attention != "none"
    return Translator(
        encoder=encoder,
        decoder=LuongDecoder(
            embedding=_embedding(settings, vocab),
            stack=_stack(settings, vocab, extra=hidden if feeds else 0),
            lookup=_lookup(settings),
            combine=Linear(2 * hidden, hidden, bias=False) if attends else None,
            input_feeding=feeds,
            dropout=settings.dropout,
        ),
        projection=Linear(hidden, vocab),
    )


def _bahdanau_translator(
    settings: RecurrentSettings, encoder: RecurrentEncoder, vocab: int
) -> Translator[Any]:
    """Return a translator that looks back before each state update."""
    hidden, width = settings.hidden, _width(settings, vocab)
    return Translator(
        encoder=encoder,
        decoder=BahdanauDecoder(
            embedding=_embedding(settings, vocab),
            stack=_stack(settings, vocab, extra=hidden),
            lookup=_lookup(settings),
            readout=Linear(width + 2 * hidden, hidden, bias=False),
            dropout=settings.dropout,
        ),
        projection=Linear(hidden, vocab),
    )


def _shared_translator(
    settings: RecurrentSettings, encoder: RecurrentEncoder, vocab: int
) -> Translator[Any]:
    """Return a translator with one recurrent matrix: y(t) = softmax(W^o [y^d(t); y^a(t)])."""
    attends = settings.attention != "none"
    decoder = LuongDecoder(
        embedding=_embedding(settings, vocab),
        stack=_stack(settings, vocab),
        lookup=_lookup(settings),
        combine=None,
        dropout=settings.dropout,
    )
    share_recurrence(encoder.stack, decoder.stack)
    width = 2 * settings.hidden if attends else settings.hidden
    return Translator(encoder=encoder, decoder=decoder, projection=Linear(width, vocab, bias=False))


def _width(settings: RecurrentSettings, vocab: int) -> int:
    return vocab if settings.one_hot else settings.embedding


def _embedding(settings: RecurrentSettings, vocab: int) -> nn.Module:
    if settings.one_hot:
        return OneHot(vocab=vocab)
    return nn.Embedding(vocab, settings.embedding, padding_idx=PAD)


def _stack(
    settings: RecurrentSettings, vocab: int, *, extra: int = 0, bidirectional: bool = False
) -> RecurrentStack:
    """Return the layers that read the tokens of a vocabulary, with `extra` further features."""
    return RecurrentStack(
        kind=settings.cell,
        input_dim=_width(settings, vocab) + extra,
        hidden=settings.hidden,
        layers=settings.layers,
        bidirectional=bidirectional,
        dropout=settings.dropout,
    )


def _lookup(settings: RecurrentSettings) -> Lookup | None:
    if settings.attention == "none":
        return None
    width = settings.hidden
    score = SCORES[settings.attention](query_dim=width, key_dim=width, heads=settings.heads)
    return Lookup(score=score)


RECURRENT_DECODERS = {
    "luong": _luong_translator,
    "bahdanau": _bahdanau_translator,
    "shared": _shared_translator,
}


def build_transformer_translator(
    settings: TransformerSettings, *, source_vocab: int, target_vocab: int
) -> Translator[Any]:
    """Return a Transformer; the settings' names are those of its plan."""
    chosen = settings.model_dump(exclude={"family", "source_vocab", "target_vocab"})
    chosen["decoder_layers"] = settings.decoder_layers or settings.layers
    plan = TransformerPlan(**chosen)
    return plan.translator(source_vocab=source_vocab, target_vocab=target_vocab)


TRANSLATORS: dict[str, Callable[..., Translator[Any]]] = {
    "recurrent": build_recurrent_translator,
    "transformer": build_transformer_translator,
}
