"""Settings to model: each builder reads as a picture of the architecture it builds."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

from torch import nn

from regard.attention import places
from regard.attention import positions as encodings
from regard.attention.experts import ExpertGate, MixtureOfExperts
from regard.attention.hashing import HashedPattern
from regard.attention.multihead import MultiHeadAttention
from regard.attention.patterns import AdaptiveSpan, Pattern, SparsePattern
from regard.attention.scores import SCORES, AttentionScore
from regard.base.errors import SettingsError
from regard.base.special_tokens import PAD
from regard.compute.linear import Linear
from regard.models.recurrent import build_recurrent_translator
from regard.models.translator import Translator
from regard.settings.models import RecurrentSettings, TransformerSettings
from regard.settings.recipe import require_known
from regard.transformer import layers as parts
from regard.transformer.decoder import DecoderLayer, TransformerDecoder
from regard.transformer.encoder import ConvolutionalEncoder, ConvolutionalLayer, TransformerEncoder

AnyPositions = TypeVar("AnyPositions", bound=places.Positions)
SCALED_DOT = "scaled-dot"  # the score that has kernels of its own


def positions_named(name: str) -> type[places.Positions]:
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
    encoder_window: int | None = None
    convolution_width: int = 3
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    tie: str = "target"
    scaled_embeddings: bool = True
    output_bias: bool = False
    scaled_output: bool = False
    alignment_layer: int = -1
    alignment_head: int | None = None
    head_dim: int | None = None
    key_value_heads: int | None = None
    head_norm: bool = False
    norm_epsilon: float | None = None
    embedding_norm: bool = False
    attention_biases: str = "all"
    feed_forward_biases: bool = True
    rotary_base: float = 10_000.0
    rotary_factor: float = 1.0
    rotary_low: float = 1.0
    rotary_high: float = 4.0
    rotary_length: int = 8_192
    buckets: int = 32
    bucket_reach: int = 128
    learned_offset: int = 0
    segments: int = 0
    experts: int = 0
    experts_per_token: int = 1
    expert_every: int = 1
    expert_gate: str = "softmax"
    expert_bias: bool = False
    expert_capacity: float | None = None
    pattern: str = "full"
    stride: int = 32
    summary: int = 1
    hash_buckets: int = 8
    hash_rounds: int = 2
    hash_chunk: int = 32
    span: int | None = None
    span_ramp: int = 16
    span_loss: float = 1e-4
    balance_loss: float = 0.01
    gate_z_loss: float = 0.0

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
            "positions": issubclass(kind, places.PairPositions),
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
        one_table = self.tie in ("all", "inputs")
        source_table = target_table if one_table else self._embedding(source_vocab)
        if one_table and source_vocab != target_vocab:
            raise SettingsError(
                f'model.tie = "{self.tie}" needs one vocabulary for both languages, but the source '
                f'has {source_vocab} entries and the target {target_vocab}; use tie = "target".'
            )
        return Translator(
            encoder=self._encoder(source_table),
            decoder=TransformerDecoder(
                embedded=self._embedded(target_table),
                layers=[self._decoder_layer(number) for number in range(self.decoder_layers)],
                norm=self._last_norm(),
                window=self.window,
                distance_bias=self._positions(places.DistanceBias, causal=True),
                alignment_layer=self.alignment_layer,
                alignment_head=self.alignment_head,
                output_scale=self.model_dim**-0.5 if self.scaled_output else 1.0,
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
            layers=[self._self_layer(number) for number in range(self.layers)],
            norm=self._last_norm(),
            window=self.window,
            lower_window=self.encoder_window or self.window,
            distance_bias=self._positions(places.DistanceBias),
        )

    def _self_layer(self, number: int) -> parts.SelfAttentionLayer:
        return parts.SelfAttentionLayer(
            attention=self._self_attention(),
            attention_residual=self._residual(),
            feed_forward=self._feed_forward(number),
            feed_forward_residual=self._residual(),
        )

    def _decoder_layer(self, number: int) -> DecoderLayer:
        recurrent = self.decoder == "ssru"
        return DecoderLayer(
            self_attention=parts.RecurrentUnit(self.model_dim)
            if recurrent
            else self._self_attention(),
            self_residual=self._residual(),
            cross_attention=self._attention(),
            cross_residual=self._residual(),
            feed_forward=self._feed_forward(number),
            feed_forward_residual=self._residual(),
        )

    def _self_attention(self) -> MultiHeadAttention:
        return self._attention(
            positions=self._positions(places.PairPositions)
            or self._positions(places.RotatedPositions),
            linear=self.kernel == "linear",
            pattern=self._pattern(),
        )

    def _pattern(self) -> Pattern | None:
        """Return which pairs self-attention leaves out; None for nothing."""
        if self.span is not None:
            return AdaptiveSpan(
                self.heads, most=self.span, ramp=self.span_ramp, cost=self.span_loss
            )
        if self.pattern == "hashed":
            return HashedPattern(
                self._head_dim,
                buckets=self.hash_buckets,
                rounds=self.hash_rounds,
                chunk=self.hash_chunk,
            )
        if self.pattern == "full":
            return None
        return SparsePattern(self.pattern, stride=self.stride, summary=self.summary)

    def _attention(self, **only_of_self_attention: Any) -> MultiHeadAttention:
        norms = (self._head_norm(), self._head_norm()) if self.head_norm else None
        return MultiHeadAttention(
            model_dim=self.model_dim,
            heads=self.heads,
            head_dim=self.head_dim,
            key_value_heads=self.key_value_heads,
            head_norms=norms,
            biases=self.attention_biases,
            dropout=self.attention_dropout,
            score=self._score(),
            **only_of_self_attention,
        )

    def _head_norm(self) -> nn.Module:
        return parts.norm_of(self.norm, self._head_dim, epsilon=self.norm_epsilon)

    @property
    def _head_dim(self) -> int:
        return self.head_dim or self.model_dim // self.heads

    def _feed_forward(self, number: int) -> parts.FeedForward | MixtureOfExperts:
        """Return one network, or in every so manieth layer a choice of several."""
        if not self.experts or (number + 1) % self.expert_every:
            return self._one_network()
        try:
            gate = ExpertGate(
                self.model_dim,
                experts=self.experts,
                chosen=self.experts_per_token,
                kind=self.expert_gate,
                bias=self.expert_bias,
            )
        except ValueError as error:
            raise SettingsError(f"model: {error}.") from error
        return MixtureOfExperts(
            [self._one_network() for _ in range(self.experts)],
            gate=gate,
            capacity=self.expert_capacity,
            balance=self.balance_loss,
            z=self.gate_z_loss,
        )

    def _one_network(self) -> parts.FeedForward:
        return parts.FeedForward(
            self.model_dim,
            hidden=self.feed_forward,
            activation=self.activation,
            dropout=self.activation_dropout,
            biases=self.feed_forward_biases,
        )

    def _residual(self) -> parts.Residual:
        return parts.Residual(
            self._norm(), pre_norm=self.norm_placement == "pre", dropout=self.dropout
        )

    def _norm(self) -> nn.Module:
        return parts.norm_of(self.norm, self.model_dim, epsilon=self.norm_epsilon)

    def _last_norm(self) -> nn.Module | None:
        """Return the norm after the last layer, which pre-norm layers leave undone."""
        return self._norm() if self.norm_placement == "pre" else None

    def _embedded(self, table: nn.Embedding) -> parts.Embedded:
        return parts.Embedded(
            table,
            positions=self._positions(places.AddedPositions),
            scaled=self.scaled_embeddings,
            norm=self._norm() if self.embedding_norm else None,
            segments=self.segments,
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
        if self.tie in ("target", "all"):  # Press & Wolf 2017
            projection.weight = table.weight
        return projection

    def _positions(self, place: type[AnyPositions], *, causal: bool = False) -> AnyPositions | None:
        """Return fresh positions, if they are of those that act in this place."""
        kind = encodings.POSITIONS[self.positions]
        if not issubclass(kind, place):
            return None
        options = {
            field.name: getattr(self, field.name)
            for field in fields(places.PositionOptions)
            if field.name != "causal"
        }
        try:
            chosen = places.PositionOptions(**options, causal=causal)
            return cast(AnyPositions, kind.build(chosen))
        except ValueError as error:
            raise SettingsError(f'model.positions = "{self.positions}": {error}.') from error

    def _score(self) -> AttentionScore | None:
        """Return the score of every pair; None for the scaled dot product, which has kernels."""
        if self.score == SCALED_DOT:
            return None
        return SCORES[self.score](query_dim=self._head_dim, key_dim=self._head_dim)


def build_translator(
    settings: RecurrentSettings | TransformerSettings, *, source_vocab: int, target_vocab: int
) -> Translator[Any]:
    """Return a fresh translator; the one place where a model family is chosen."""
    return TRANSLATORS[settings.family](
        settings, source_vocab=source_vocab, target_vocab=target_vocab
    )


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
