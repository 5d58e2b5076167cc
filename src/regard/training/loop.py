"""The training loop, from the first update to the last, for any model."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NoReturn

import torch
from torch import nn

from regard.base.errors import Interrupted, NonFiniteError
from regard.compute.device import (
    differences,
    keep_memory,
    numerics,
    random_states,
    set_random_states,
)
from regard.compute.group import current_group
from regard.training import averages, checkpoint
from regard.training.distributed import Updates, follow_launched, taking_updates
from regard.training.objective import (
    AnyBatch,
    Limits,
    Objective,
    Optimisation,
    Start,
    Validation,
)
from regard.training.progress import Observer, Progress, StartObserver, StopSignals
from regard.training.update import UpdateResult


def fit(
    model: nn.Module,
    objective: Objective[AnyBatch],
    optimisation: Optimisation[AnyBatch],
    *,
    limits: Limits,
    store: checkpoint.CheckpointStore,
    observer: Observer,
    last: bool = True,
) -> Progress:
    """Train until a limit is reached, from the newest checkpoint if there is one.

    SIGINT and SIGTERM end the training after its running update, with a checkpoint. Processes that
    torchrun has started to follow end with the `last` training.
    """
    keep_memory()
    group = current_group()
    if not group.leads:
        return follow_launched(model, objective, optimisation, last=last)
    store.follow(optimisation.moving)
    sharing = optimisation.sharing
    processes = group.size if group.size > 1 or sharing is None else sharing.processes
    store.evidence["numerics"] = numerics(model, processes=processes)
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
    updates: Updates[AnyBatch] = field(init=False)

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
        began = time.monotonic() - progress.seconds
        self.saved = progress.seconds
        self.model.train()
        with taking_updates(
            self.model, self.objective, optimisation, note=self.observer.noted
        ) as self.updates:
            self.updates.begin(progress.epoch, progress.batch)
            if progress.validation_due:
                progress = self._validated_and_saved(progress)
            while (reason := limits.reached(progress)) is None:
                self.model.train()
                optimisation.completion.share = limits.done(progress)
                taken = self.updates.take(progress.step + 1)
                result = taken.result
                progress = progress.moved(
                    to=taken.place, seconds=time.monotonic() - began, skipped=result.skipped
                )
                self.observer.updated(progress, result, taken.facts)
                self._check(progress, result, taken.batches)
                progress = self._validated_and_saved(progress)
            with self.stop.at_once():  # everything is saved; what follows can be done again
                progress, reason = self._averaged(progress, reason)
            self.updates.end(progress)
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

    def _validated_and_saved(self, progress: Progress) -> Progress:
        """Validate and write a checkpoint if it is time to, or if the training is to stop."""
        last = self.limits.reached(progress) is not None
        due = last or progress.step % self.limits.validate_every == 0 or progress.validation_due
        if due and self.stop.received is not None:
            self._interrupt(replace(progress, validation_due=True), extra=True)
        if due:
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
                return self.updates.validate(changed=self.optimisation.moving is not None)
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
        better = _averaged(self.model, progress, self.updates, self.store, average)
        if better is None:
            return progress, reason
        # Recorded in the checkpoint, so that a longer training has to beat this value.
        self._save(better, extra=False)
        return better, f"{reason}; the mean of {average.count} checkpoints is the best model"


EXPLODED = 5  # times the usual loss
LASTING = 20  # updates in a row; single batches may be hard


def _averaged(
    model: nn.Module,
    progress: Progress,
    updates: Updates[Any],
    store: checkpoint.CheckpointStore,
    average: averages.CheckpointAverage,
) -> Progress | None:
    """Validate the mean of checkpoints; keep it and return its progress if it is the best."""
    chooses = updates.objective.final_validate is not None
    folders = store.candidates() if average.of == "best" else store.folders()[-average.count :]
    if len(folders) < average.count:
        return None
    model.eval()
    best = math.inf if progress.best_value is None else progress.best_value
    if chooses and store.best.is_dir():
        with (
            averages.replaced(model, checkpoint.read_weights(model, store.best)),
            torch.no_grad(),
        ):
            best = updates.validate(changed=True, final=True).value
    with averages.replaced(
        model, averages.mean_of(checkpoint.read_weights(model, folder) for folder in folders)
    ):
        with torch.no_grad():
            found = updates.validate(changed=True)
            value = updates.validate(changed=True, final=True).value if chooses else found.value
        if not value <= best:
            return None
        progress = replace(progress, best_value=found.value, best_step=progress.step)
        store.save_mean(model, progress, found.metrics, folders=folders)
    return progress
