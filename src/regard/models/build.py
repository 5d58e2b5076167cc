"""Settings to model: each builder reads as a picture of the architecture it builds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from regard.attention.lookup import Lookup
from regard.attention.scores import SCORES
from regard.base.products import Linear
from regard.base.specials import PAD
from regard.models.transformer import TransformerPlan
from regard.models.translator import Translator
from regard.recurrent.bahdanau import BahdanauDecoder
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.encoder import RecurrentEncoder
from regard.recurrent.luong import LuongDecoder
from regard.recurrent.one_hot import OneHot
from regard.recurrent.shared import share_recurrence
from regard.settings.model import RecurrentSettings
from regard.settings.suggest import require_known
from regard.settings.transformer import TransformerSettings


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
    """Return the layers that read a vocabulary's symbols, and beside them so many features."""
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
