"""The state of recurrent decoders: it goes into every step and comes out of it."""

from __future__ import annotations

from typing import NamedTuple

from regard.attention.lookup import Memory
from regard.base.shapes import Float, Int, Tensor
from regard.recurrent.cells import CellState


class DecoderState(NamedTuple):
    """Everything that the next step needs."""

    cells: CellState
    memory: Memory | None
    """The source to look at; None without attention."""
    handed: Float[Tensor, "batch width"] | None = None
    """What a step hands to the next beside its cells: with input feeding, its features; for a
    decoder that reads the source's summary at every step, that summary."""

    def select(self, rows: Int[Tensor, "chosen"]) -> DecoderState:
        """Return the state of these rows of the batch, in this order."""
        return DecoderState(
            cells=tuple(part.index_select(1, rows) for part in self.cells),
            memory=None if self.memory is None else self.memory.select(rows),
            handed=None if self.handed is None else self.handed.index_select(0, rows),
        )
