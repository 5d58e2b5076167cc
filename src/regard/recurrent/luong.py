"""The decoder that looks back after its state update, or has the encoder's last state alone.

Luong et al. 2015, section 3. Without input feeding all target positions are computed at once.
"""

from __future__ import annotations

import torch
from torch import nn

from regard.attention.dropout import Dropout
from regard.attention.lookup import Lookup, Memory
from regard.attention.repeated import product, repeated
from regard.base.results import Encoded, Output
from regard.base.shapes import Float, Int, Tensor
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.stack_loop import StackLoop
from regard.recurrent.state import DecoderState


class LuongDecoder(nn.Module):
    """s_i = f(s_{i-1}, y_{i-1}); with attention the features are t_i = tanh(W [s_i; c_i]).

    Without `combine` they are [s_i; c_i] itself. With input feeding (section 3.3)
    s_i = f(s_{i-1}, [y_{i-1}; t_{i-1}]), and the stack is that much wider.
    """

    def __init__(
        self,
        *,
        embedding: nn.Module,
        stack: RecurrentStack,
        lookup: Lookup | None,
        combine: nn.Linear | None,
        input_feeding: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        if input_feeding and (lookup is None or combine is None):
            raise ValueError("input feeding hands on attention's features: it needs attention")
        self.embedding = embedding
        self.stack = stack
        self.lookup = lookup
        self.combine = combine
        self.input_feeding = input_feeding
        self.dropout = Dropout(dropout)

    def start(self, encoded: Encoded) -> DecoderState:
        """Take over the encoder's last state and, for attention, its memory."""
        cells = encoded.summary
        if self.lookup is None:
            return DecoderState(cells=cells, memory=None)
        memory = self.lookup.prepare(encoded.memory, encoded.mask)
        fed = torch.zeros_like(cells[0][-1]) if self.input_feeding else None
        return DecoderState(cells=cells, memory=memory, handed=fed)

    def forward(
        self,
        tokens: Int[Tensor, "batch target"],
        state: DecoderState,
        *,
        with_weights: bool = False,
    ) -> tuple[Output, DecoderState]:
        """Read target symbols, one or many at once; return the features that predict the next."""
        embedded = self.dropout(self.embedding(tokens))
        if self.input_feeding:
            return self._feed(embedded, state, with_weights=with_weights)
        hidden, cells = self.stack(embedded, state.cells)
        features, weights = self._look(hidden, state.memory, with_weights=with_weights)
        return Output(self.dropout(features), weights), DecoderState(cells, state.memory)

    def _look(
        self,
        hidden: Float[Tensor, "batch target hidden"],
        memory: Memory | None,
        *,
        with_weights: bool,
    ) -> tuple[Float[Tensor, "batch target width"], Float[Tensor, "batch target source"] | None]:
        if self.lookup is None or memory is None:
            return hidden, None
        context, weights = self.lookup(hidden, memory, with_weights=with_weights)
        joined = torch.cat([hidden, context], dim=-1)
        return joined if self.combine is None else torch.tanh(self.combine(joined)), weights

    def _feed(
        self,
        embedded: Float[Tensor, "batch target embedding"],
        state: DecoderState,
        *,
        with_weights: bool,
    ) -> tuple[Output, DecoderState]:
        """Read one symbol after the other, each with the features of the one before."""
        if self.lookup is None or self.combine is None:
            raise ValueError("input feeding needs attention")
        if state.memory is None or state.handed is None:
            raise ValueError("input feeding needs a state that `start` made with attention")
        loop = StackLoop(self.stack, embedded, state.cells)
        memory, fed = state.memory.repeated(), state.handed
        hidden_dim = self.stack.cell_hidden
        of_hidden = repeated(self.combine.weight[:, :hidden_dim])
        of_context = repeated(self.combine.weight[:, hidden_dim:])
        # What dropout keeps, drawn for all steps at once.
        kept = self.dropout(embedded.new_ones(*embedded.shape[:2], hidden_dim)).unbind(dim=1)
        features, weights = [], []
        for time in range(len(loop)):
            hidden = loop.step(time, fed)
            context, seen = self.lookup(hidden[:, None], memory, with_weights=with_weights)
            joined = product(context[:, 0], of_context, product(hidden, of_hidden))
            fed = torch.tanh(joined)
            fed = fed * kept[time] if self.dropout.training else fed
            features.append(fed)
            weights.append(seen)
        attention = (
            torch.cat([w for w in weights if w is not None], dim=1) if with_weights else None
        )
        output = Output(torch.stack(features, dim=1), attention)
        return output, DecoderState(loop.last(), state.memory, fed)

    def select(self, state: DecoderState, rows: Int[Tensor, "chosen"]) -> DecoderState:
        """Return the state of these rows of the batch, in this order."""
        return state.select(rows)
