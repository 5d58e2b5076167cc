"""Settings to model: each builder reads as a picture of the architecture it builds."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn

from regard.attention.scores import SCORES
from regard.base.specials import PAD
from regard.models.translator import Translator
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.decoder import RecurrentDecoder
from regard.recurrent.encoder import RecurrentEncoder
from regard.settings.model import RecurrentSettings
from regard.settings.suggest import require_known


def build_translator(
    settings: RecurrentSettings, *, source_vocab: int, target_vocab: int
) -> Translator[Any]:
    """Return a fresh translator; the one place where a model family is chosen."""
    return TRANSLATORS[settings.family](
        settings, source_vocab=source_vocab, target_vocab=target_vocab
    )


def build_recurrent_translator(
    settings: RecurrentSettings, *, source_vocab: int, target_vocab: int
) -> Translator[Any]:
    """Return a recurrent encoder-decoder, with attention unless it is set to "none"."""
    hidden, width, dropout = settings.hidden, settings.embedding, settings.dropout
    stack = partial(
        RecurrentStack,
        kind=settings.cell,
        input_dim=width,
        hidden=hidden,
        layers=settings.layers,
        dropout=dropout,
    )
    require_known(settings.attention, ["none", *SCORES], what="model.attention")
    attends = settings.attention != "none"
    return Translator(
        encoder=RecurrentEncoder(
            embedding=nn.Embedding(source_vocab, width, padding_idx=PAD),
            stack=stack(bidirectional=settings.bidirectional),
            dropout=dropout,
        ),
        decoder=RecurrentDecoder(
            embedding=nn.Embedding(target_vocab, width, padding_idx=PAD),
            stack=stack(),
            score=SCORES[settings.attention](query_dim=hidden, key_dim=hidden) if attends else None,
            combine=nn.Linear(2 * hidden, hidden, bias=False) if attends else None,
            dropout=dropout,
        ),
        projection=nn.Linear(hidden, target_vocab),
    )


TRANSLATORS = {"recurrent": build_recurrent_translator}
