"""The recurrent encoder: a memory of every source position and a summary of them all."""

from __future__ import annotations

from torch import nn

from regard.attention.dropout import Dropout
from regard.base.results import Encoded
from regard.base.shapes import Bool, Int, Tensor
from regard.recurrent.cells import CellState, RecurrentStack


class RecurrentEncoder(nn.Module):
    """Reads the source in both directions (Bahdanau et al. 2015, section 3.2) or in one."""

    def __init__(self, *, embedding: nn.Module, stack: RecurrentStack, dropout: float = 0.0):
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.dropout = Dropout(dropout)

    def forward(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> Encoded:
        """Return the hidden states of all positions and, as summary, the last of each layer."""
        embedded = self.dropout(self.embedding(source))
        memory, last = self.stack.read_packed(embedded, mask.sum(dim=1))
        return Encoded(memory=self.dropout(memory), mask=mask, summary=self._join(last))

    def _join(self, state: CellState) -> CellState:
        """Set the last states of both directions side by side: [layers, batch, hidden]."""
        if not self.stack.bidirectional:
            return state
        layers = self.stack.layers
        return tuple(
            part.view(layers, 2, *part.shape[1:])
            .transpose(1, 2)
            .flatten(2)  # [layers, batch, hidden]
            for part in state
        )
