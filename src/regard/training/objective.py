"""What a training is made of: what is learned, how, and until when."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import nn

from regard.batching.order import BatchPosition
from regard.training import averages
from regard.training.losses import LossSum
from regard.training.progress import Completion, DataFacts, Progress
from regard.training.update import Counted, Sharing


@runtime_checkable
class TrainingBatch(Counted, Protocol):
    """A batch that also knows how much of it is padding."""

    @property
    def padding_share(self) -> float:
        """Return the share of positions that hold no token."""
        ...


AnyBatch = TypeVar("AnyBatch", bound=TrainingBatch)


def in_minutes(minutes: float) -> str:
    """Return a time in words: "1 minute", "2.5 minutes"."""
    return f"{minutes:g} minute{'s' * (minutes != 1)}"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When to stop, validate and save."""

    steps: int
    minutes: float | None = None
    patience: int | None = None
    validate_every: int = 500
    checkpoint_every: int = 500
    checkpoint_minutes: float = 5.0
    """Time after which a checkpoint is written besides the regular ones."""
    max_skipped: int = 10
    """Updates in a row without a finite loss and gradient after which training stops."""

    def done(self, progress: Progress) -> float:
        """Return the share that is done, by steps or by minutes, whichever ends first."""
        by_time = 0.0 if self.minutes is None else progress.seconds / (60 * self.minutes)
        return min(1.0, max(progress.step / self.steps, by_time))

    def reached(self, progress: Progress) -> str | None:
        """Return why training should end now, or None if it should go on."""
        if progress.step >= self.steps:
            return f"all {self.steps} updates done"
        if self.minutes is not None and progress.seconds >= 60 * self.minutes:
            return f"{in_minutes(self.minutes)} {'is' if self.minutes == 1 else 'are'} over"
        if self.patience is not None and progress.without_progress >= self.patience:
            return f"no progress in {self.patience} validations"
        return None


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What a validation found: figures to show, and the one to select by (lower is better)."""

    metrics: Mapping[str, float]
    value: float


@dataclass(frozen=True, kw_only=True)
class Objective(Generic[AnyBatch]):
    """What is learned: the loss of a batch, the batches from any position on, the validation."""

    loss_sum: Callable[[AnyBatch], LossSum]
    batches_from: Callable[[int, int], Iterator[tuple[BatchPosition, AnyBatch]]]
    validate: Callable[[], Validation]
    final_validate: Callable[[], Validation] | None = None
    """The final validator: chooses between the best model and the average of checkpoints.

    It runs twice in a training, so it may use a slower search than `validate`.
    """
    validates_together: bool = False
    """Whether the validators share their work out among processes, by `shared_out`."""
    read: Callable[[], DataFacts] | None = None
    """Returns what is known of the data, for the plan that is shown first."""


@dataclass(frozen=True, kw_only=True)
class Optimisation(Generic[AnyBatch]):
    """How it is learned: the optimiser, its learning rate, averages, and worker processes."""

    optimizer: torch.optim.Optimizer
    learning_rate: Callable[[int, float], float]
    clip: float = 1.0
    accumulate: int = 1
    moving: averages.MovingAverage | None = None
    """A moving average, which is validated and kept in the model's place."""
    average: averages.CheckpointAverage | None = None
    """An average of checkpoints, made at the end and kept if it validates at least as well."""
    sharing: Sharing[AnyBatch] | None = None
    """How several processes share the gradients of a batch."""
    completion: Completion = field(default_factory=Completion)
    """Kept up to date by the loop, for what is switched off before the end."""

    def set_learning_rate(self, step: int) -> float:
        """Set the learning rate of the update of this number, from 1, and return it."""
        rate = self.learning_rate(step, self.completion.share)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("rate_share", 1.0)
        return rate


@dataclass(frozen=True)
class Start:
    """A training that is about to start."""

    model: nn.Module
    objective: Objective[Any]
    optimisation: Optimisation[Any]
    limits: Limits
