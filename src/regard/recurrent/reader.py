"""A recurrent network that reads symbols from left to right and predicts the next ones."""

from __future__ import annotations

from torch import nn

from regard.attention.dropout import Dropout
from regard.base.results import Output
from regard.base.shapes import Int, Tensor
from regard.recurrent.cells import CellState, RecurrentStack


class RecurrentReader(nn.Module):
    """h_t = f(x_t, h_{t-1}); what was read is all in the state (Mikolov et al. 2010)."""

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        stack: RecurrentStack,
        narrow: nn.Linear | None = None,
        dropout: float = 0.0,
    ):
        """`narrow` brings the states to another width, as a shared table of symbols needs it."""
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.narrow = narrow
        self.dropout = Dropout(dropout)

    def start(self, batch: int) -> CellState:
        """Return the state before the first symbol."""
        return self.stack.zero_state(batch)

    def forward(
        self, tokens: Int[Tensor, "batch time"], state: CellState, *, with_weights: bool = False
    ) -> tuple[Output, CellState]:
        """Read symbols; there are no weights to return."""
        states, after = self.stack(self.dropout(self.embedding(tokens)), state)
        features = self.dropout(states)
        if self.narrow is not None:
            features = self.narrow(features)
        return Output(features, None), after

    def select(self, state: CellState, rows: Int[Tensor, "chosen"]) -> CellState:
        """Return the state of these rows of the batch, in this order."""
        return tuple(part.index_select(1, rows) for part in state)
