"""The recurrent decoder, with attention over the encoder's memory or with its last state alone.

Attention comes after the state update (Luong et al. 2015, section 3), so that in training all
target positions are computed at once.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from regard.attention.scores import Score
from regard.attention.weights import attend
from regard.base.results import Encoded, Output
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.recurrent.cells import CellState, RecurrentStack


class Memory(NamedTuple):
    """The source as attention sees it: prepared keys, values, and which of them are real."""

    keys: Float[Tensor, "batch source prepared_dim"]
    values: Float[Tensor, "batch source hidden"]
    mask: Bool[Tensor, "batch source"]


class DecoderState(NamedTuple):
    """Everything that the next step needs; without attention there is no memory to look at."""

    cells: CellState
    memory: Memory | None


class RecurrentDecoder(nn.Module):
    """s_i = f(s_{i-1}, y_{i-1}); with attention the features are tanh(W [s_i; c_i])."""

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        stack: RecurrentStack,
        score: Score | None,
        combine: nn.Linear | None,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.score = score
        self.combine = combine
        self.dropout = nn.Dropout(dropout)

    def start(self, encoded: Encoded) -> DecoderState:
        """Take over the encoder's last state and, for attention, its memory."""
        if self.score is None:
            return DecoderState(cells=encoded.summary, memory=None)
        memory = Memory(self.score.prepare(encoded.memory), encoded.memory, encoded.mask)
        return DecoderState(cells=encoded.summary, memory=memory)

    def forward(
        self,
        tokens: Int[Tensor, "batch target"],
        state: DecoderState,
        *,
        with_weights: bool = False,
    ) -> tuple[Output, DecoderState]:
        """Read target symbols, one or many at once; return the features that predict the next."""
        embedded = self.dropout(self.embedding(tokens))
        hidden, cells = self.stack(embedded, state.cells)
        features, weights = self._look(hidden, state.memory, with_weights=with_weights)
        return Output(self.dropout(features), weights), DecoderState(cells, state.memory)

    def _look(
        self,
        hidden: Float[Tensor, "batch target hidden"],
        memory: Memory | None,
        *,
        with_weights: bool,
    ) -> tuple[Float[Tensor, "batch target hidden"], Float[Tensor, "batch target source"] | None]:
        if self.score is None or self.combine is None or memory is None:
            return hidden, None
        scores = self.score(hidden, memory.keys)
        context, weights = attend(
            scores, values=memory.values, mask=memory.mask, with_weights=with_weights
        )
        return torch.tanh(self.combine(torch.cat([hidden, context], dim=-1))), weights

    def select(self, state: DecoderState, rows: Int[Tensor, "chosen"]) -> DecoderState:
        """Return the state of these rows of the batch, in this order."""
        cells = tuple(part.index_select(1, rows) for part in state.cells)
        if state.memory is None:
            return DecoderState(cells, None)
        return DecoderState(cells, Memory(*(part.index_select(0, rows) for part in state.memory)))
