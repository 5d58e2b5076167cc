"""Settings to language model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import nn

from regard.attention.positions import LearnedPositions
from regard.base.products import Linear
from regard.models.language_model import LanguageModel
from regard.models.transformer import TransformerPlan
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.reader import RecurrentReader
from regard.settings.language_model import (
    CausalTransformerSettings,
    RecurrentLanguageModelSettings,
)
from regard.transformer.causal import CausalTransformer
from regard.transformer.layer import SelfAttentionLayer

SPREAD, SPREAD_WIDTH = 0.02, 768  # of fresh weights, and for which width (Radford et al. 2018, 4.1)


def build_language_model(
    settings: CausalTransformerSettings | RecurrentLanguageModelSettings, *, vocab: int
) -> LanguageModel[Any]:
    """Return a fresh language model; the one place where its family is chosen."""
    return LANGUAGE_MODELS[settings.family](settings, vocab=vocab)


class CausalPlan(TransformerPlan):
    """The plan of a Transformer that has no encoder."""

    def language_model(self, *, vocab: int) -> LanguageModel[Any]:
        """Return a fresh decoder-only Transformer."""
        table = nn.Embedding(vocab, self.model_dim)
        model: LanguageModel[Any] = LanguageModel(
            reader=CausalTransformer(
                embedded=self._embedded(table),
                layers=[self._self_layer() for _ in range(self.layers)],
                norm=self._last_norm(),
                window=self.window,
                slopes=self._slopes(),
            ),
            projection=self._projection(table),
            context=self.max_length,
        )
        _spread_weights(model, layers=self.layers, width=self.model_dim)
        return model


def _build_transformer(settings: CausalTransformerSettings, *, vocab: int) -> LanguageModel[Any]:
    return CausalPlan(
        layers=settings.layers,
        model_dim=settings.model_dim,
        heads=settings.heads,
        feed_forward=settings.feed_forward or 4 * settings.model_dim,
        norm_placement="pre",
        norm=settings.norm,
        activation=settings.activation,
        positions=settings.positions,
        max_length=settings.context,
        window=settings.window,
        dropout=settings.dropout,
        attention_dropout=settings.attention_dropout,
        activation_dropout=0.0,
        tie="target" if settings.tie else "none",
        # Sinusoids are of size 1: embeddings must be as large to be heard beside them.
        scaled_embeddings=settings.positions == "sinusoidal",
    ).language_model(vocab=vocab)


def _build_recurrent(settings: RecurrentLanguageModelSettings, *, vocab: int) -> LanguageModel[Any]:
    table = nn.Embedding(vocab, settings.embedding)
    nn.init.normal_(table.weight, std=settings.embedding**-0.5)
    narrows = settings.tie and settings.embedding != settings.hidden
    width = settings.embedding if narrows else settings.hidden
    projection = Linear(width, vocab)
    if settings.tie:  # Press & Wolf 2017
        projection.weight = table.weight
    return LanguageModel(
        reader=RecurrentReader(
            embedding=table,
            stack=RecurrentStack(
                kind=settings.cell,
                input_dim=settings.embedding,
                hidden=settings.hidden,
                layers=settings.layers,
                dropout=settings.dropout,
            ),
            narrow=Linear(settings.hidden, width) if narrows else None,
            dropout=settings.dropout,
        ),
        projection=projection,
        context=None,
    )


def _spread_weights(model: nn.Module, *, layers: int, width: int) -> None:
    """Draw all matrices from one narrow normal distribution, as GPT-2 does.

    Narrower models sum fewer products: theirs is wider, by the root, so that all begin as loud as
    GPT-2. What each layer adds to the way around it is narrower still, by the root of the number of
    such sums, so that a deep stack begins no louder than a shallow one (Radford et al. 2019, 2.3).
    """
    spread = SPREAD * math.sqrt(SPREAD_WIDTH / width)
    for part in model.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=spread)
        elif isinstance(part, LearnedPositions):
            nn.init.normal_(part.vectors, std=spread)
    for part in model.modules():
        if isinstance(part, SelfAttentionLayer):
            for last in (part.attention.output, part.feed_forward.outer):
                nn.init.normal_(last.weight, std=spread / math.sqrt(2 * layers))


LANGUAGE_MODELS: dict[str, Callable[..., LanguageModel[Any]]] = {
    "transformer": _build_transformer,
    "recurrent": _build_recurrent,
}
