"""The decoder that looks back before its state update (Bahdanau et al. 2015, section 3.1)."""

from __future__ import annotations

import torch
from torch import nn

from regard.attention.dropout import Dropout
from regard.attention.lookup import Lookup
from regard.base.results import Encoded, Output
from regard.base.shapes import Float, Int, Tensor
from regard.recurrent.cells import CellState, RecurrentStack
from regard.recurrent.stack_loop import StackLoop
from regard.recurrent.state import DecoderState


class BahdanauDecoder(nn.Module):
    """s_i = f(s_{i-1}, y_{i-1}, c_i), where c_i comes from scores e_ij = a(s_{i-1}, h_j).

    The features are g(y_{i-1}, s_i, c_i) = tanh(W [y_{i-1}; s_i; c_i]). Without a lookup the
    context is the constant c = h_T: the control that differs in nothing but attention.
    """

    def __init__(
        self,
        *,
        embedding: nn.Module,
        stack: RecurrentStack,
        lookup: Lookup | None,
        readout: nn.Linear,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.lookup = lookup
        self.readout = readout
        self.dropout = Dropout(dropout)

    def start(self, encoded: Encoded) -> DecoderState:
        """Take over the encoder's last state, and its memory or else that last state as context."""
        cells = encoded.summary
        if self.lookup is None:
            return DecoderState(cells=cells, memory=None, handed=cells[0][-1])  # h_T
        return DecoderState(cells=cells, memory=self.lookup.prepare(encoded.memory, encoded.mask))

    def forward(
        self,
        tokens: Int[Tensor, "batch target"],
        state: DecoderState,
        *,
        with_weights: bool = False,
    ) -> tuple[Output, DecoderState]:
        """Read target symbols, one or many; return the features that predict the next."""
        embedded = self.dropout(self.embedding(tokens))  # y_{i-1}
        hidden, context, weights, cells = (
            self._read(embedded, state)
            if self.lookup is None
            else self._look_and_read(embedded, state, self.lookup, with_weights=with_weights)
        )
        features = torch.tanh(self.readout(torch.cat([embedded, hidden, context], dim=-1)))
        return Output(self.dropout(features), weights), state._replace(cells=cells)

    def _read(
        self, embedded: Float[Tensor, "batch target embedding"], state: DecoderState
    ) -> tuple[Tensor, Tensor, None, CellState]:
        """Read all symbols at once, each with the same context."""
        if state.handed is None:
            raise ValueError("a decoder without attention needs a state that its `start` made")
        context = state.handed[:, None].expand(-1, embedded.shape[1], -1)
        hidden, cells = self.stack(torch.cat([embedded, context], dim=-1), state.cells)
        return hidden, context, None, cells

    def _look_and_read(
        self,
        embedded: Float[Tensor, "batch target embedding"],
        state: DecoderState,
        lookup: Lookup,
        *,
        with_weights: bool,
    ) -> tuple[Tensor, Tensor, Tensor | None, CellState]:
        """Look with the state before, then read a symbol with what was found; and again."""
        if state.memory is None:
            raise ValueError("a decoder with attention needs a state that its `start` made")
        loop = StackLoop(self.stack, embedded, state.cells)
        memory = state.memory.repeated()
        hidden, contexts, weights = [], [], []
        for time in range(len(loop)):
            context, seen = lookup(loop.hidden[:, None], memory, with_weights=with_weights)
            hidden.append(loop.step(time, context[:, 0]))
            contexts.append(context)
            weights.append(seen)
        attention = (
            torch.cat([w for w in weights if w is not None], dim=1) if with_weights else None
        )
        return torch.stack(hidden, dim=1), torch.cat(contexts, dim=1), attention, loop.last()

    def select(self, state: DecoderState, rows: Int[Tensor, "chosen"]) -> DecoderState:
        """Return the state of these rows of the batch, in this order."""
        return state.select(rows)
