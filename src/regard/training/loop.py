"""The training loop, from the first update to the last, for any model."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from torch import nn

from regard.batching.order import BatchPosition
from regard.compute.device import keep_memory
from regard.compute.processes import using_threads
from regard.training import checkpoint
from regard.training.losses import LossSum
from regard.training.progress import Completion, Observer, Progress
from regard.training.update import Counted, Sharing, gradients, update

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


@runtime_checkable
class TrainingBatch(Counted, Protocol):
    """A batch that also knows how much of it is padding."""

    @property
    def padding_share(self) -> float:
        """Return the share of positions that hold no token."""
        ...


AnyBatch = TypeVar("AnyBatch", bound=TrainingBatch)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When to stop, validate and save."""

    steps: int
    minutes: float | None = None
    patience: int | None = None
    validate_every: int = 500
    checkpoint_every: int = 500

    def done(self, progress: Progress) -> float:
        """Return the share that is done, by steps or by minutes, whichever ends first."""
        by_time = 0.0 if self.minutes is None else progress.seconds / (60 * self.minutes)
        return min(1.0, max(progress.step / self.steps, by_time))


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


@dataclass(frozen=True, kw_only=True)
class Optimisation(Generic[AnyBatch]):
    """How it is learned: the optimiser, its learning rate, averages, and worker processes."""

    optimizer: torch.optim.Optimizer
    learning_rate: Callable[[int, float], float]
    clip: float = 1.0
    accumulate: int = 1
    moving: checkpoint.MovingAverage | None = None
    """A moving average, which is validated and kept in the model's place."""
    average: checkpoint.CheckpointAverage | None = None
    """An average of checkpoints, made at the end and kept if it validates at least as well."""
    sharing: Sharing[AnyBatch] | None = None
    """How several processes share the gradients of a batch."""
    completion: Completion = field(default_factory=Completion)
    """Kept up to date by the loop, for what is switched off before the end."""


def fit(
    model: nn.Module,
    objective: Objective[AnyBatch],
    optimisation: Optimisation[AnyBatch],
    *,
    limits: Limits,
    store: checkpoint.CheckpointStore,
    observer: Observer,
) -> Progress:
    """Train until a limit is reached, from the newest checkpoint if there is one."""
    keep_memory()
    store.follow(optimisation.moving)
    optimizer, average = optimisation.optimizer, optimisation.average
    progress = store.restore(model, optimizer)
    batches = objective.batches_from(progress.epoch, progress.batch)
    parameters = [p for p in model.parameters() if p.requires_grad]
    began = time.monotonic() - progress.seconds
    all_threads = torch.get_num_threads()

    model.train()
    with gradients(objective.loss_sum, parameters, optimisation.sharing) as add_gradient:
        while (reason := _reason_to_stop(progress, limits)) is None:
            model.train()
            optimisation.completion.share = limits.done(progress)
            taken = list(islice(batches, optimisation.accumulate))
            rate = _set_learning_rate(optimisation, progress)
            result = update(
                [batch for _, batch in taken],
                add_gradient=add_gradient,
                parameters=parameters,
                optimizer=optimizer,
                clip=optimisation.clip,
            )
            if optimisation.moving is not None:
                optimisation.moving.update(progress.step + 1)
            progress = progress.moved(to=taken[-1][0], seconds=time.monotonic() - began)
            padding = sum(batch.padding_share for _, batch in taken) / len(taken)
            observer.updated(progress, result, {"learning_rate": rate, "padding": padding})

            last = _reason_to_stop(progress, limits) is not None
            if last or progress.step % limits.validate_every == 0:
                with using_threads(all_threads):
                    progress = _validated(
                        model, progress, objective.validate, store, observer, optimisation
                    )
            last = _reason_to_stop(progress, limits) is not None  # patience may be exhausted now
            if last or progress.step % limits.checkpoint_every == 0:
                store.save(model, optimizer, progress)

    if average is not None:
        better = _averaged(model, progress, objective, store, average)
        if better is not None:
            # Recorded in the checkpoint, so that a longer training has to beat this value.
            progress = better
            store.save(model, optimizer, progress)
            reason += f"; the mean of {average.count} checkpoints is the best model"
    observer.finished(progress, reason)
    return progress


def _set_learning_rate(optimisation: Optimisation[Any], progress: Progress) -> float:
    """Set the learning rate of the next update and return it."""
    rate = optimisation.learning_rate(progress.step + 1, optimisation.completion.share)
    for group in optimisation.optimizer.param_groups:
        group["lr"] = rate * group.get("rate_share", 1.0)
    return rate


def _validated(
    model: nn.Module,
    progress: Progress,
    validate: Callable[[], Validation],
    store: checkpoint.CheckpointStore,
    observer: Observer,
    optimisation: Optimisation[Any],
) -> Progress:
    """Validate, and keep the model if it is the best so far or one of the best."""
    moving, average = optimisation.moving, optimisation.average
    model.eval()
    with checkpoint.replaced(model, moving.weights) if moving else nullcontext():
        with torch.no_grad():
            found = validate()
        progress = progress.validated(found.value)
        if progress.best_step == progress.step:
            store.save_best(model, progress, found.metrics)
        if average is not None and average.of == "best" and not math.isnan(found.value):
            store.save_candidate(model, progress, found.value, keep=average.count)
    observer.validated(progress, found.metrics)
    return progress


def _averaged(
    model: nn.Module,
    progress: Progress,
    objective: Objective[Any],
    store: checkpoint.CheckpointStore,
    average: checkpoint.CheckpointAverage,
) -> Progress | None:
    """Validate the mean of checkpoints; keep it and return its progress if it is the best."""
    final_validate = objective.final_validate
    folders = store.candidates() if average.of == "best" else store.folders()[-average.count :]
    if len(folders) < average.count:
        return None
    model.eval()
    best = math.inf if progress.best_value is None else progress.best_value
    if final_validate is not None and store.best.is_dir():
        with (
            checkpoint.replaced(model, checkpoint.read_weights(model, store.best)),
            torch.no_grad(),
        ):
            best = final_validate().value
    with checkpoint.replaced(
        model, checkpoint.mean_of(checkpoint.read_weights(model, folder) for folder in folders)
    ):
        with torch.no_grad():
            found = objective.validate()
            value = found.value if final_validate is None else final_validate().value
        if not value <= best:
            return None
        progress = replace(progress, best_value=found.value, best_step=progress.step)
        store.save_mean(model, progress, found.metrics, folders=folders)
    return progress


def _reason_to_stop(progress: Progress, limits: Limits) -> str | None:
    """Return why training should end now, or None if it should go on."""
    if progress.step >= limits.steps:
        return f"all {limits.steps} updates done"
    if limits.minutes is not None and progress.seconds >= 60 * limits.minutes:
        return f"{limits.minutes:g} minutes are over"
    if limits.patience is not None and progress.without_progress >= limits.patience:
        return f"no progress in {limits.patience} validations"
    return None
