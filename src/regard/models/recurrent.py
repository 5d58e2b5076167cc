"""The recurrent encoder-decoders: settings to model."""

from typing import Any

from torch import nn

from regard.attention.lookup import Lookup
from regard.attention.scores import SCORES
from regard.base.errors import SettingsError
from regard.base.special_tokens import PAD
from regard.compute.linear import Linear
from regard.models.translator import Translator
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.decoders import BahdanauDecoder, LuongDecoder, StartState
from regard.recurrent.encoder import OneHot, RecurrentEncoder, share_recurrence
from regard.settings.models import RecurrentSettings
from regard.settings.recipe import require_known


def build_recurrent_translator(
    settings: RecurrentSettings, *, source_vocab: int, target_vocab: int
) -> Translator[Any]:
    """Return a recurrent encoder-decoder, with attention unless it is set to "none"."""
    require_known(settings.attention, ["none", *SCORES], what="model.attention")
    try:
        return _built(settings, source_vocab, target_vocab)
    except ValueError as error:
        raise SettingsError(f"model: {error}.") from error


def _built(settings: RecurrentSettings, source_vocab: int, target_vocab: int) -> Translator[Any]:
    width, layers = _width(settings, source_vocab), settings.encoder_layers or settings.layers
    first = None
    if settings.upper_layers == "forward":
        first = _reading(settings, width, layers=1, bidirectional=True)
        width, layers = settings.encoder_width, layers - 1
    encoder = RecurrentEncoder(
        embedding=_embedding(settings, source_vocab),
        first=first,
        stack=_reading(
            settings, width, layers=layers, bidirectional=settings.bidirectional and first is None
        ),
        dropout=settings.dropout,
    )
    return RECURRENT_DECODERS[settings.decoder](settings, encoder, target_vocab)


def _reading(
    settings: RecurrentSettings, input_dim: int, *, layers: int, bidirectional: bool
) -> RecurrentStack:
    """Return layers of an encoder."""
    return RecurrentStack(
        kind=settings.cell,
        input_dim=input_dim,
        hidden=settings.encoder_width,
        layers=layers,
        bidirectional=bidirectional,
        dropout=settings.dropout,
        residual=settings.residual,
        rank=settings.cell_rank,
        groups=settings.cell_groups,
    )


def _luong_translator(
    settings: RecurrentSettings, encoder: RecurrentEncoder, vocab: int
) -> Translator[Any]:
    """Return a translator that looks back after each state update."""
    width = settings.readout or settings.hidden
    table = _embedding(settings, vocab)
    stack = _stack(settings, vocab, extra=width if settings.input_feeding else 0)
    lookup = _lookup(settings)
    combine = None
    if lookup is not None:
        joined = settings.hidden + lookup.context_dim
        combine = Linear(joined, width, bias=settings.combination_bias)
    return Translator(
        encoder=encoder,
        decoder=LuongDecoder(
            embedding=table,
            stack=stack,
            lookup=lookup,
            combine=combine,
            input_feeding=settings.input_feeding,
            dropout=settings.dropout,
            starter=_starter(settings, stack),
            query_sum=settings.query == "sum",
        ),
        projection=_projection(settings, width, vocab),
    )


def _bahdanau_translator(
    settings: RecurrentSettings, encoder: RecurrentEncoder, vocab: int
) -> Translator[Any]:
    """Return a translator that looks back before each state update."""
    width = settings.readout or settings.hidden
    projects = settings.attention != "none" and SCORES[settings.attention].projects_values
    context = settings.hidden if projects else settings.encoder_width
    table, stack = _embedding(settings, vocab), _stack(settings, vocab, extra=context)
    joined = _width(settings, vocab) + settings.hidden + context
    return Translator(
        encoder=encoder,
        decoder=BahdanauDecoder(
            embedding=table,
            stack=stack,
            lookup=_lookup(settings),
            readout=Linear(joined, width, bias=settings.combination_bias),
            dropout=settings.dropout,
            starter=_starter(settings, stack),
            query_sum=settings.query == "sum",
        ),
        projection=_projection(settings, width, vocab),
    )


def _shared_translator(
    settings: RecurrentSettings, encoder: RecurrentEncoder, vocab: int
) -> Translator[Any]:
    """Return a translator with one recurrent matrix: y(t) = softmax(W^o [y^d(t); y^a(t)])."""
    attends = settings.attention != "none"
    table, stack = _embedding(settings, vocab), _stack(settings, vocab)
    decoder = LuongDecoder(
        embedding=table,
        stack=stack,
        lookup=_lookup(settings),
        combine=None,
        dropout=settings.dropout,
        starter=_starter(settings, stack),
        query_sum=settings.query == "sum",
    )
    share_recurrence(encoder.stack, decoder.stack, inputs=settings.shared_inputs)
    width = 2 * settings.hidden if attends else settings.hidden
    return Translator(encoder=encoder, decoder=decoder, projection=Linear(width, vocab, bias=False))


def _width(settings: RecurrentSettings, vocab: int) -> int:
    return vocab if settings.one_hot else settings.embedding


def _embedding(settings: RecurrentSettings, vocab: int) -> nn.Module:
    if settings.one_hot:
        return OneHot(vocab=vocab)
    return nn.Embedding(vocab, settings.embedding, padding_idx=PAD)


def _projection(settings: RecurrentSettings, width: int, vocab: int) -> nn.Linear:
    return Linear(width, vocab, bias=settings.output_bias)


def _starter(settings: RecurrentSettings, stack: RecurrentStack) -> StartState | None:
    """Return what makes the decoder's first state; None if it is the encoder's last."""
    if settings.start == "last":
        return None
    learned = settings.start != "zero"
    projection = Linear(settings.encoder_width, settings.hidden) if learned else None
    return StartState(stack, projection=projection, of_mean=settings.start == "mean")


def _stack(settings: RecurrentSettings, vocab: int, *, extra: int = 0) -> RecurrentStack:
    """Return the layers that read the tokens of a vocabulary, with `extra` further features."""
    return RecurrentStack(
        kind=settings.cell,
        input_dim=_width(settings, vocab) + extra,
        hidden=settings.hidden,
        layers=settings.layers,
        dropout=settings.dropout,
        residual=settings.residual,
        rank=settings.cell_rank,
        groups=settings.cell_groups,
    )


def _lookup(settings: RecurrentSettings) -> Lookup | None:
    if settings.attention == "none":
        return None
    score = SCORES[settings.attention](
        query_dim=settings.hidden,
        key_dim=settings.encoder_width,
        heads=settings.heads,
        **({"biases": True} if settings.score_biases else {}),
    )
    return Lookup(score=score)


RECURRENT_DECODERS = {
    "luong": _luong_translator,
    "bahdanau": _bahdanau_translator,
    "shared": _shared_translator,
}
