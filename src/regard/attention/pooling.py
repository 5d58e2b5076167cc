"""Many-to-one attention: T hidden states become one context.

Both kinds have one number for each time step and one for each hidden unit, T + hidden parameters;
they differ in whether the weights may depend on what was read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import nn

from regard.base.results import Attended
from regard.base.shapes import Float, Tensor


class Pooling(nn.Module):
    """Builds one context from the states of `time` steps; subclasses give the formula.

    Raffel & Ellis 2016, eq. 1, call this feed-forward attention.
    """

    weight_formula: ClassVar[str] = "alpha_t"
    context_formula: ClassVar[str] = "c = sum_t alpha_t h_t"

    def __init__(self, *, time: int, hidden: int):
        super().__init__()
        self.time = time
        self.hidden = hidden

    def forward(
        self, states: Float[Tensor, "batch time hidden"], *, with_weights: bool = False
    ) -> Attended:
        """Return c = sum_t alpha_t h_t and, on request, alpha."""
        if states.shape[1] != self.time:
            raise ValueError(
                f"pooling: {states.shape[1]} time steps were given, but it has weights for "
                f"{self.time}"
            )
        weights = self.weigh(states)
        context = torch.einsum("bt,bth->bh", weights, states) + self.offset()
        return Attended(context, weights if with_weights else None)

    def weigh(self, states: Float[Tensor, "batch time hidden"]) -> Float[Tensor, "batch time"]:
        """Return alpha_t for every time step."""
        raise TypeError(f"{type(self).__name__} gives no formula for its weights")

    def offset(self) -> Tensor | float:
        """Return what is added to the weighted sum."""
        return 0.0


class LecturePooling(Pooling):
    """c = sum_t alpha_t h_t + b, with free alpha: the same weights whatever was read."""

    weight_formula = "alpha_t, learned, the same for every window"
    context_formula = "c = sum_t alpha_t h_t + b"

    def __init__(self, *, time: int, hidden: int):
        super().__init__(time=time, hidden=hidden)
        # Begins as the mean of the states; alpha may leave [0, 1], since nothing holds it there.
        self.alpha = nn.Parameter(torch.full((time,), 1 / time))
        self.bias = nn.Parameter(torch.zeros(hidden))

    def weigh(self, states: Float[Tensor, "batch time hidden"]) -> Float[Tensor, "batch time"]:
        """Return the learned alpha, the same for every row of the batch."""
        return self.alpha.expand(len(states), -1)

    def offset(self) -> Tensor:
        """Return b."""
        return self.bias


class SoftmaxPooling(Pooling):
    """e_t = tanh(w . h_t + b_t), alpha = softmax(e), c = sum_t alpha_t h_t."""

    weight_formula = "alpha_t = softmax_t(e_t)"

    def __init__(self, *, time: int, hidden: int):
        super().__init__(time=time, hidden=hidden)
        self.readout = nn.Parameter(torch.empty(hidden))  # w
        self.bias = nn.Parameter(torch.zeros(time))  # b, one number a time step
        nn.init.normal_(self.readout, std=hidden**-0.5)

    def score(self, states: Float[Tensor, "batch time hidden"]) -> Float[Tensor, "batch time"]:
        """Return e_t = tanh(w . h_t + b_t)."""
        return torch.tanh(states @ self.readout + self.bias)

    def weigh(self, states: Float[Tensor, "batch time hidden"]) -> Float[Tensor, "batch time"]:
        """Return alpha = softmax(e)."""
        return torch.softmax(self.score(states), dim=-1)


POOLINGS: dict[str, Callable[..., Pooling]] = {
    "lecture": LecturePooling,
    "softmax": SoftmaxPooling,
}
