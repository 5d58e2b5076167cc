"""The one optimiser step, normalised by the target tokens of all its batches."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from regard.training.losses import LossSum


@runtime_checkable
class Counted(Protocol):
    """A batch that knows how many target tokens it holds."""

    @property
    def target_tokens(self) -> int:
        """Return the number of real target positions."""
        ...


AnyBatch = TypeVar("AnyBatch", bound=Counted)

# (batch, tokens): adds the gradient of the batch's summed loss, divided by `tokens`, to that of the
# parameters, and returns the loss in nats.
AddGradient: TypeAlias = Callable[[AnyBatch, int], Tensor]


@dataclass(frozen=True)
class UpdateResult:
    """What one update saw: mean loss in nats a token, tokens, gradient norm before clipping."""

    loss: float
    tokens: int
    gradient_norm: float
    skipped: bool = False
    """Whether no weight was changed, because loss or gradient was not finite."""


def update(
    batches: Sequence[AnyBatch],
    *,
    add_gradient: AddGradient[AnyBatch],
    parameters: Sequence[nn.Parameter],
    optimizer: torch.optim.Optimizer,
    clip: float,
    add_up: Callable[[float, int], float] | None = None,
) -> UpdateResult:
    """Take one step down the gradient of the mean loss over all tokens of these batches.

    `add_up(nats, tokens)` sums gradients and loss over the processes that share the batches. If
    the loss or the gradient is infinite or not a number, the step is skipped.
    """
    tokens = sum(batch.target_tokens for batch in batches)
    optimizer.zero_grad(set_to_none=True)
    losses = [add_gradient(batch, tokens) for batch in batches]
    summed = None if add_up is None else add_up(sum(map(float, losses)), tokens)
    # Elsewhere than on the processor, the one pause of an update: both are asked for at once.
    norm, *each = torch.stack([nn.utils.clip_grad_norm_(parameters, clip), *losses]).tolist()
    nats = sum(each) if summed is None else summed
    skipped = not (math.isfinite(norm) and math.isfinite(nats))
    if not skipped:
        optimizer.step()
    return UpdateResult(loss=nats / tokens, tokens=tokens, gradient_norm=norm, skipped=skipped)


def add_gradient(loss_sum: Callable[[AnyBatch], LossSum], batch: AnyBatch, tokens: int) -> Tensor:
    """Add the gradient of a batch's summed loss, divided by `tokens`; return the loss in nats."""
    loss = loss_sum(batch)
    (loss.objective / tokens).backward()  # type: ignore[no-untyped-call]
    return loss.nats.detach()


MOST_VALUES = 1_000_000  # of one tensor of a batch that is written


def plain_batch(value: Any) -> Any:
    """Return a batch, its tensors and what it consists of, as values for JSON."""
    if isinstance(value, Tensor):
        if value.numel() > MOST_VALUES:
            return f"{value.dtype} of shape {tuple(value.shape)}"
        floats = value.is_floating_point()
        return [str(x) for x in value.flatten().tolist()] if floats else value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain_batch(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple | list):
        return [plain_batch(one) for one in value]
    return value if isinstance(value, int | str | bool | None) else str(value)


@dataclass(frozen=True)
class Sharing(Generic[AnyBatch]):
    """Among how many processes an update is shared out, and how a batch is split for them."""

    processes: int
    split: Callable[[AnyBatch, int], Sequence[AnyBatch]]
