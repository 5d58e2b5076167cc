"""The training loop, from the first update to the last, for any model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import nn

from regard.compute.device import keep_memory
from regard.compute.processes import using_threads
from regard.training.checkpoint import (
    CheckpointAverage,
    CheckpointStore,
    MovingAverage,
    mean_of,
    read_weights,
    replaced,
)
from regard.training.losses import LossSum
from regard.training.progress import Done, Observer, Progress
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
        """Return the share of positions that hold no symbol."""
        ...


AnyBatch = TypeVar("AnyBatch", bound=TrainingBatch)


@runtime_checkable
class Position(Protocol):
    """A place in the order of batches."""

    @property
    def epoch(self) -> int:
        """Return how many times all examples were seen."""
        ...

    @property
    def batch(self) -> int:
        """Return how many batches of the epoch were taken."""
        ...


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


def fit(
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_sum: Callable[[AnyBatch], LossSum],
    batches_from: Callable[[int, int], Iterator[tuple[Position, AnyBatch]]],
    learning_rate: Callable[[int, float], float],
    validate: Callable[[], Validation],
    store: CheckpointStore,
    limits: Limits,
    observer: Observer,
    clip: float = 1.0,
    accumulate: int = 1,
    moving: MovingAverage | None = None,
    average: CheckpointAverage | None = None,
    judge: Callable[[], Validation] | None = None,
    sharing: Sharing[AnyBatch] | None = None,
    done: Done | None = None,
) -> Progress:
    """Train until a limit is reached, from the newest checkpoint if there is one.

    A moving average is validated and kept in the model's place. An average of checkpoints is made
    at the end, and kept if it validates at least as well as the best model; where there is a
    `judge`, that one decides between the two, say with a search too slow for every validation.
    With `sharing` several processes compute the gradients. `done` is kept up to date.
    """
    done = Done() if done is None else done
    keep_memory()
    store.follow(moving)
    progress = store.restore(model, optimizer)
    batches = batches_from(progress.epoch, progress.batch)
    parameters = [p for p in model.parameters() if p.requires_grad]
    began = time.monotonic() - progress.seconds
    all_threads = torch.get_num_threads()

    model.train()
    with gradients(loss_sum, parameters, sharing) as add_gradient:
        while (reason := _reason_to_stop(progress, limits)) is None:
            model.train()
            done.share = limits.done(progress)
            taken = list(islice(batches, accumulate))
            rate = learning_rate(progress.step + 1, done.share)
            for group in optimizer.param_groups:
                group["lr"] = rate * group.get("rate_share", 1.0)
            result = update(
                [batch for _, batch in taken],
                add_gradient=add_gradient,
                parameters=parameters,
                optimizer=optimizer,
                clip=clip,
            )
            if moving is not None:
                moving.update(progress.step + 1)
            position = taken[-1][0]
            progress = replace(
                progress,
                step=progress.step + 1,
                epoch=position.epoch,
                batch=position.batch,
                seconds=time.monotonic() - began,
            )
            padding = sum(batch.padding_share for _, batch in taken) / len(taken)
            observer.updated(progress, result, {"learning_rate": rate, "padding": padding})

            last = _reason_to_stop(progress, limits) is not None
            if last or progress.step % limits.validate_every == 0:
                with using_threads(all_threads):
                    progress = _validated(
                        model, progress, validate, store, observer, moving, average
                    )
            last = _reason_to_stop(progress, limits) is not None  # the validation may be a reason
            if last or progress.step % limits.checkpoint_every == 0:
                store.save(model, optimizer, progress)

    if average is not None:
        better = _averaged(model, progress, validate, store, average, judge)
        if better is not None:
            # The checkpoint knows the new mark, so that a longer training has to reach it.
            progress = better
            store.save(model, optimizer, progress)
            reason += f"; the mean of {average.count} checkpoints is the best model"
    observer.finished(progress, reason)
    return progress


def _validated(
    model: nn.Module,
    progress: Progress,
    validate: Callable[[], Validation],
    store: CheckpointStore,
    observer: Observer,
    moving: MovingAverage | None,
    average: CheckpointAverage | None,
) -> Progress:
    """Validate, and keep the model if it is the best so far or one of the best."""
    model.eval()
    with replaced(model, moving.weights) if moving else nullcontext():
        with torch.no_grad():
            found = validate()
        progress = progress.judged(found.value)
        if progress.best_step == progress.step:
            store.save_best(model, progress, found.metrics)
        if average is not None and average.of == "best" and not math.isnan(found.value):
            store.save_candidate(model, progress, found.value, keep=average.count)
    observer.validated(progress, found.metrics)
    return progress


def _averaged(
    model: nn.Module,
    progress: Progress,
    validate: Callable[[], Validation],
    store: CheckpointStore,
    average: CheckpointAverage,
    judge: Callable[[], Validation] | None,
) -> Progress | None:
    """Validate the mean of checkpoints; keep it and return its progress if it is the best."""
    folders = store.candidates() if average.of == "best" else store.folders()[-average.count :]
    if len(folders) < average.count:
        return None
    model.eval()
    best = math.inf if progress.best_value is None else progress.best_value
    if judge is not None and store.best.is_dir():
        with replaced(model, read_weights(model, store.best)), torch.no_grad():
            best = judge().value
    with replaced(model, mean_of(read_weights(model, folder) for folder in folders)):
        with torch.no_grad():
            found = validate()
            value = found.value if judge is None else judge().value
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
