"""How weights move: the course of the learning rate, and Muon.

Muon: a matrix goes by its momentum made orthogonal, everything else by AdamW.

A gradient of a matrix has few strong directions; a step of equal strength in all of them learns as
much in fewer updates (Jordan et al. 2024). Its cost grows with the cube of the width and not with
the batch, so it pays for narrow models and large batches.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.base.shapes import Float, Tensor

# Each takes the share of the training that is done (0 to 1), the step and the warm-up, and returns
# a factor. The share is by steps or by time, so a training that ends early has also decayed.
SCHEDULES: dict[str, Callable[[float, int, int], float]] = {
    "constant": lambda done, step, warmup: 1.0,
    "linear": lambda done, step, warmup: 1.0 - done,
    "cosine": lambda done, step, warmup: 0.01 + 0.99 * (1 + math.cos(math.pi * done)) / 2,
    # Vaswani et al. 2017, section 5.3, scaled so that the peak is 1 at the end of the warm-up.
    "inverse-sqrt": lambda done, step, warmup: math.sqrt(max(warmup, 1) / max(step, 1)),
}


def learning_rate(step: int, done: float, *, schedule: str, peak: float, warmup: int) -> float:
    """Return the learning rate of an update (counted from 1): a linear rise, then the schedule."""
    if step < warmup:
        return peak * step / warmup
    return peak * SCHEDULES[schedule](min(1.0, done), step, warmup)


# Jordan et al. 2024: an odd polynomial of the singular values, whose five-fold repetition brings
# all of them near 1 from nearly anywhere below 1.
A, B, C = 3.4445, -4.7750, 2.0315
REPETITIONS = 5
MOMENTUM = 0.95
# Liu et al. 2025, eq. 4: the mean size of a step of AdamW, so that its learning rates fit here.
STEP_SIZE = 0.2


@dataclass(frozen=True)
class MuonMatrix:
    """A parameter that maps vectors to vectors; `parts` of them may stand one above the other."""

    parameter: Tensor
    parts: int = 1


class Muon(torch.optim.AdamW):
    """W <- W - rate * 0.2 sqrt(max(m, n)) * orthogonal(momentum) for a matrix of m rows, n columns.

    `matrix_rate` is the learning rate of the matrices, as a multiple of that of all others.
    """

    def __init__(
        self,
        matrices: Sequence[MuonMatrix],
        others: Iterable[Tensor],
        *,
        betas: tuple[float, float],
        weight_decay: float = 0.0,
        matrix_rate: float = 1.0,
    ):
        alone: dict[str, Any] = {"params": [matrix.parameter for matrix in matrices]}
        groups = [{"params": list(others)}, alone | {"rate_share": matrix_rate}]
        super().__init__(groups, betas=betas, weight_decay=weight_decay, fused=True)
        self._parts = [matrix.parts for matrix in matrices]

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take a step; the gradients of the matrices are used up by it."""
        group = self.param_groups[-1]
        same_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for parameter, parts in zip(group["params"], self._parts, strict=True):
            if parameter.grad is None:
                continue
            direction = self._direction(parameter)
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
            for piece, change in zip(parameter.chunk(parts), direction.chunk(parts), strict=True):
                same_shape.setdefault(piece.shape, []).append((piece, change))
            parameter.grad = None  # AdamW passes over what has no gradient
        for (rows, columns), pairs in same_shape.items():
            steps = orthogonal(torch.stack([change for _, change in pairs]))
            size = group["lr"] * STEP_SIZE * math.sqrt(max(rows, columns))
            for (piece, _), step in zip(pairs, steps, strict=True):
                piece.sub_(step, alpha=size)
        super().step()

    def _direction(self, parameter: Tensor) -> Tensor:
        """Return the gradient mixed with the momentum, as Nesterov does, which it adds to."""
        gradient = parameter.grad
        if gradient is None:
            raise ValueError("a parameter without a gradient has no direction")
        memory = self.state[parameter]
        if "momentum" not in memory:
            memory["momentum"] = torch.zeros_like(parameter)
            memory["step"] = torch.zeros(())  # AdamW, when it is loaded, looks for one everywhere
        memory["step"] += 1
        momentum: Tensor = memory["momentum"]
        momentum.lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(momentum, MOMENTUM)


def orthogonal(
    matrices: Float[Tensor, "count rows columns"],
) -> Float[Tensor, "count rows columns"]:
    """Return matrices with the same singular vectors, and singular values near 1.

    X <- a X + (b X X^T + c (X X^T)^2) X (Newton-Schulz; Jordan et al. 2024), on the smaller side.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-12)  # no singular value is above 1
    for _ in range(REPETITIONS):
        gram = x @ x.mT
        polynomial = torch.baddbmm(gram, gram, gram, beta=B, alpha=C)
        x = torch.baddbmm(x, polynomial, x, beta=A)
    return x.mT if tall else x
