"""The one optimiser step, normalised by the number of target tokens.

k micro-batches and one large batch give the same step, because each micro-batch adds its share of
the mean over *all* their tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import torch
from torch import nn

from regard.training.loss import LossSum


@runtime_checkable
class Counted(Protocol):
    """A batch that knows how many target tokens it holds."""

    @property
    def target_tokens(self) -> int:
        """Return the number of real target positions."""
        ...


AnyBatch = TypeVar("AnyBatch", bound=Counted)

# Adds the gradient of a batch's summed loss, divided by so many tokens, to that of the parameters,
# and returns the loss in nats.
AddGradient: TypeAlias = Callable[[AnyBatch, int], float]


@dataclass(frozen=True)
class UpdateResult:
    """What one update saw: mean loss in nats a token, tokens, gradient norm before clipping."""

    loss: float
    tokens: int
    gradient_norm: float


def update(
    batches: Sequence[AnyBatch],
    *,
    add_gradient: AddGradient[AnyBatch],
    parameters: Sequence[nn.Parameter],
    optimizer: torch.optim.Optimizer,
    clip: float,
) -> UpdateResult:
    """Take one step down the gradient of the mean loss over all tokens of these batches."""
    tokens = sum(batch.target_tokens for batch in batches)
    optimizer.zero_grad(set_to_none=True)
    nats = sum(add_gradient(batch, tokens) for batch in batches)
    norm = nn.utils.clip_grad_norm_(parameters, clip)
    optimizer.step()
    return UpdateResult(loss=nats / tokens, tokens=tokens, gradient_norm=float(norm))


def add_gradient(loss_sum: Callable[[AnyBatch], LossSum], batch: AnyBatch, tokens: int) -> float:
    """Add the gradient of a batch's summed loss, divided by `tokens`; return the loss in nats."""
    loss = loss_sum(batch)
    (loss.objective / tokens).backward()  # type: ignore[no-untyped-call]
    return float(loss.nats)
