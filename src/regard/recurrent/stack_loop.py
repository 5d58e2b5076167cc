"""The layers of a stack, one step at a time, where a part of the input is known only on the way."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from regard.attention.repeated import product, repeated
from regard.base.products import linear
from regard.base.shapes import Float, Tensor
from regard.recurrent.cells import CellState, RecurrentStack
from regard.recurrent.steps import StepState, cell_step


class StackLoop:
    """A stack of one direction that reads [known; late]: the known part is multiplied beforehand.

    Lives for one pass over a sequence; the stack itself remembers nothing.
    """

    def __init__(
        self,
        stack: RecurrentStack,
        known: Float[Tensor, "batch time known_dim"],
        state: CellState,
    ):
        first, *others = stack.cells
        known_dim = known.shape[-1]
        weights = first.input_weights
        self.projected = linear(known, weights[:, :known_dim], first.bias).unbind(dim=1)
        self.late_weights = repeated(weights[:, known_dim:])
        self.upper = [(repeated(cell.input_weights), cell.bias) for cell in others]
        self.recurrences = [cell.recurrence() for cell in stack.cells]
        self.states: list[StepState] = [
            tuple(part[layer] for part in state) for layer in range(stack.layers)
        ]
        self.dropout = stack.dropout if stack.training else 0.0

    def __len__(self) -> int:
        return len(self.projected)

    @property
    def hidden(self) -> Float[Tensor, "batch hidden"]:
        """The visible state of the top layer."""
        return self.states[-1][0]

    def step(
        self, time: int, late: Float[Tensor, "batch late_dim"]
    ) -> Float[Tensor, "batch hidden"]:
        """Read the input of this time with its late part; return the top layer's new state."""
        projected = product(late, self.late_weights, self.projected[time])
        self.states[0] = cell_step(self.recurrences[0], projected, self.states[0])
        for layer, (weights, bias) in enumerate(self.upper, start=1):
            below = self.states[layer - 1][0]
            if self.dropout:
                below = F.dropout(below, self.dropout)
            projected = product(below, weights)
            projected = projected if bias is None else projected + bias
            self.states[layer] = cell_step(self.recurrences[layer], projected, self.states[layer])
        return self.hidden

    def last(self) -> CellState:
        """Return the state after the last step, as stacks take it."""
        return tuple(torch.stack(parts) for parts in zip(*self.states, strict=True))
