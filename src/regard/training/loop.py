"""The training loop, from the first update to the last, for any model."""

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, NoReturn, Protocol, TypeVar, runtime_checkable

import torch
from torch import nn

from regard.base.errors import Interrupted, NonFiniteError
from regard.batching.order import BatchPosition
from regard.compute.device import (
    differences,
    keep_memory,
    numerics,
    random_states,
    set_random_states,
    using_threads,
)
from regard.training import averages, checkpoint
from regard.training.losses import LossSum
from regard.training.progress import (
    Completion,
    DataFacts,
    Observer,
    Progress,
    StartObserver,
    StopSignals,
)
from regard.training.update import Counted, Sharing, UpdateResult, gradients, update


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


@dataclass(frozen=True)
class Start:
    """A training that is about to start."""

    model: nn.Module
    objective: Objective[Any]
    optimisation: Optimisation[Any]
    limits: Limits


def fit(
    model: nn.Module,
    objective: Objective[AnyBatch],
    optimisation: Optimisation[AnyBatch],
    *,
    limits: Limits,
    store: checkpoint.CheckpointStore,
    observer: Observer,
) -> Progress:
    """Train until a limit is reached, from the newest checkpoint if there is one.

    SIGINT and SIGTERM end the training after its running update, with a checkpoint.
    """
    keep_memory()
    store.follow(optimisation.moving)
    sharing = optimisation.sharing
    store.evidence["numerics"] = numerics(model, processes=sharing.processes if sharing else 1)
    with StopSignals(observer.noted) as stop:
        training = _Training(model, objective, optimisation, limits, store, observer, stop)
        return training.run()


@dataclass
class _Training(Generic[AnyBatch]):
    """One training on its way."""

    model: nn.Module
    objective: Objective[AnyBatch]
    optimisation: Optimisation[AnyBatch]
    limits: Limits
    store: checkpoint.CheckpointStore
    observer: Observer
    stop: StopSignals
    saved: float = 0.0
    """The seconds of training at the last checkpoint."""
    usual_loss: float | None = None
    """A moving average of the loss."""
    high_losses: int = 0
    """The last updates in a row with a loss far above that."""

    def run(self) -> Progress:
        """Train from the newest checkpoint to a limit."""
        optimisation, limits = self.optimisation, self.limits
        progress = self.store.restore(self.model, optimisation.optimizer, note=self.observer.noted)
        if progress.step:
            self.observer.noted(f"resuming at update {progress.step}")
            self._say_other_numerics()
        elif isinstance(self.observer, StartObserver):
            with self.stop.at_once():
                self.observer.starting(Start(self.model, self.objective, optimisation, limits))
        progress = replace(progress, skipped_in_a_row=0)
        batches = self.objective.batches_from(progress.epoch, progress.batch)
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        began = time.monotonic() - progress.seconds
        self.saved = progress.seconds
        all_threads = torch.get_num_threads()
        self.model.train()
        with gradients(self.objective.loss_sum, parameters, optimisation.sharing) as add_gradient:
            if progress.validation_due:
                progress = self._validated_and_saved(progress, threads=all_threads)
            while (reason := limits.reached(progress)) is None:
                self.model.train()
                optimisation.completion.share = limits.done(progress)
                taken = list(islice(batches, optimisation.accumulate))
                rate = _set_learning_rate(optimisation, progress)
                result = update(
                    [batch for _, batch in taken],
                    add_gradient=add_gradient,
                    parameters=parameters,
                    optimizer=optimisation.optimizer,
                    clip=optimisation.clip,
                )
                if optimisation.moving is not None and not result.skipped:
                    optimisation.moving.update(progress.step + 1)
                progress = progress.moved(
                    to=taken[-1][0], seconds=time.monotonic() - began, skipped=result.skipped
                )
                padding = sum(batch.padding_share for _, batch in taken) / len(taken)
                facts = {"learning_rate": rate, "padding": padding}
                self.observer.updated(progress, result, facts)
                self._check(progress, result, [batch for _, batch in taken])
                progress = self._validated_and_saved(progress, threads=all_threads)
        with self.stop.at_once():  # everything is saved; what follows can be done again
            progress, reason = self._averaged(progress, reason)
        if progress.skipped:
            reason += f"; {progress.skipped} updates skipped, their gradients were not finite"
        self.observer.finished(progress, reason)
        return progress

    def _say_other_numerics(self) -> None:
        """Say if a resumed training cannot end with the very weights of an uninterrupted one."""
        if self.store.newest is None:
            return
        before = checkpoint.read_state(self.store.newest).get("numerics")
        if changed := differences(before, self.store.evidence["numerics"]):
            self.observer.noted(
                f"{changed}: the weights will differ in their last digits from those of a "
                "training that was not interrupted"
            )

    def _validated_and_saved(self, progress: Progress, *, threads: int) -> Progress:
        """Validate and write a checkpoint if it is time to, or if the training is to stop."""
        last = self.limits.reached(progress) is not None
        due = last or progress.step % self.limits.validate_every == 0 or progress.validation_due
        if due and self.stop.received is not None:
            self._interrupt(replace(progress, validation_due=True), extra=True)
        if due:
            with using_threads(threads):
                progress = self._validated(progress)
        last = self.limits.reached(progress) is not None  # patience may be exhausted now
        regular = last or progress.step % self.limits.checkpoint_every == 0
        if self.stop.received is not None:
            self._interrupt(progress, extra=not regular)
        late = progress.seconds - self.saved >= 60 * self.limits.checkpoint_minutes
        # While updates are skipped, the checkpoint before them is the one to keep.
        if last or ((regular or late) and not progress.skipped_in_a_row):
            self._save(progress, extra=not regular)
        return progress

    def _save(self, progress: Progress, *, extra: bool) -> None:
        with self._telling_divergence(progress):
            self.store.save(self.model, self.optimisation.optimizer, progress, extra=extra)
        self.saved = progress.seconds

    def _interrupt(self, progress: Progress, *, extra: bool) -> NoReturn:
        """Write a checkpoint and end the training, as the signal asks for."""
        self._save(progress, extra=extra)
        raise Interrupted(number=self.stop.received or signal.SIGINT, step=progress.step)

    def _validated(self, progress: Progress) -> Progress:
        """Validate, and keep the model if it is the best so far or one of the best."""
        moving, average = self.optimisation.moving, self.optimisation.average
        model, random = self.model, random_states()
        model.eval()
        with averages.replaced(model, moving.weights) if moving else nullcontext():
            found = self._found()
            if found is not None:
                progress = progress.validated(found.value)
                with self._telling_divergence(progress):
                    if progress.best_step == progress.step:
                        self.store.save_best(model, progress, found.metrics)
                    if average and average.of == "best" and math.isfinite(found.value):
                        self.store.save_candidate(model, progress, found.value, keep=average.count)
        if found is None:
            set_random_states(random)  # as it was before a validation that may have drawn
            self._interrupt(replace(progress, validation_due=True), extra=True)
        self.observer.validated(progress, found.metrics)
        return progress

    def _found(self) -> Validation | None:
        """Return what validation finds, None if a signal cuts it off.

        A model whose outputs are not numbers is never the best.
        """
        try:
            with torch.no_grad(), self.stop.at_once():
                return self.objective.validate()
        except Interrupted:
            return None
        except NonFiniteError as error:
            self.observer.noted(f"validation failed: {error}")
            return Validation(metrics={"loss": math.nan}, value=math.nan)

    def _check(self, progress: Progress, result: UpdateResult, batches: list[AnyBatch]) -> None:
        """Say that an update was skipped or that the loss explodes; stop after too many."""
        if not result.skipped:
            usual = result.loss if self.usual_loss is None else self.usual_loss
            self.high_losses = self.high_losses + 1 if result.loss > EXPLODED * usual > 0 else 0
            if self.high_losses == LASTING:
                self.observer.noted(
                    f"update {progress.step}: the loss {result.loss:.4g} stays far above the "
                    f"{usual:.4g} before; lower training.learning_rate if it does not fall"
                )
                usual, self.high_losses = result.loss, 0  # said once
            if not self.high_losses:
                self.usual_loss = 0.99 * usual + 0.01 * result.loss
            return
        row, most = progress.skipped_in_a_row, self.limits.max_skipped
        found = f"loss {result.loss:g}, gradient norm {result.gradient_norm:g}"
        self.observer.noted(f"update {progress.step} skipped: {found} ({row} in a row)")
        if row >= most:
            record = {"update": progress.step, "loss": str(result.loss)}
            norm = {"gradient_norm": str(result.gradient_norm)}
            path = self.store.save_batches(batches, {**record, **norm})
            raise NonFiniteError(
                f"Training has diverged: {found} at update {progress.step}, the last of {row} "
                f"updates in a row that were skipped. Its batch is in {path}. {self._remedy()}"
            )

    @contextmanager
    def _telling_divergence(self, progress: Progress) -> Iterator[None]:
        """Say what to do where weights that are not finite are refused."""
        try:
            yield
        except NonFiniteError as error:
            raise NonFiniteError(
                f"Training has diverged by update {progress.step}: {error} {self._remedy()}"
            ) from None

    def _remedy(self) -> str:
        """Return how to go on after a divergence."""
        newest = self.store.newest
        kept = "There is no checkpoint" if newest is None else f"The last finite one is {newest}"
        return f"{kept}; go on with a lower training.learning_rate, or clean the data."

    def _averaged(self, progress: Progress, reason: str) -> tuple[Progress, str]:
        """Return the progress and reason; the mean of checkpoints is kept if it is the best."""
        average = self.optimisation.average
        if average is None:
            return progress, reason
        better = _averaged(self.model, progress, self.objective, self.store, average)
        if better is None:
            return progress, reason
        # Recorded in the checkpoint, so that a longer training has to beat this value.
        self._save(better, extra=False)
        return better, f"{reason}; the mean of {average.count} checkpoints is the best model"


EXPLODED = 5  # times the usual loss
LASTING = 20  # updates in a row; single batches may be hard


def _set_learning_rate(optimisation: Optimisation[Any], progress: Progress) -> float:
    """Set the learning rate of the next update and return it."""
    rate = optimisation.learning_rate(progress.step + 1, optimisation.completion.share)
    for group in optimisation.optimizer.param_groups:
        group["lr"] = rate * group.get("rate_share", 1.0)
    return rate


def _averaged(
    model: nn.Module,
    progress: Progress,
    objective: Objective[Any],
    store: checkpoint.CheckpointStore,
    average: averages.CheckpointAverage,
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
            averages.replaced(model, checkpoint.read_weights(model, store.best)),
            torch.no_grad(),
        ):
            best = final_validate().value
    with averages.replaced(
        model, averages.mean_of(checkpoint.read_weights(model, folder) for folder in folders)
    ):
        with torch.no_grad():
            found = objective.validate()
            value = found.value if final_validate is None else final_validate().value
        if not value <= best:
            return None
        progress = replace(progress, best_value=found.value, best_step=progress.step)
        store.save_mean(model, progress, found.metrics, folders=folders)
    return progress
