"""How far a training has come, who is told of it, what is recorded, and signals to stop it."""

from __future__ import annotations

import json
import math
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from regard.base.errors import Interrupted, SettingsError
from regard.base.files import write_file
from regard.batching.order import BatchPosition
from regard.training.update import UpdateResult


@dataclass(frozen=True)
class Progress:
    """Everything but weights and random state that a training needs in order to continue."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    best_value: float | None = None
    best_step: int = 0
    without_progress: int = 0
    skipped: int = 0
    """Updates whose loss or gradient was not finite; they changed no weight."""
    skipped_in_a_row: int = 0
    validation_due: bool = False
    """Whether the training was stopped before or in the validation after this update."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return asdict(self)

    def moved(self, *, to: BatchPosition, seconds: float, skipped: bool = False) -> Progress:
        """Return the progress after one more update, up to this place."""
        return replace(
            self,
            step=self.step + 1,
            epoch=to.epoch,
            batch=to.batch,
            seconds=seconds,
            skipped=self.skipped + skipped,
            skipped_in_a_row=self.skipped_in_a_row + 1 if skipped else 0,
        )

    def validated(self, value: float) -> Progress:
        """Return the progress after a validation of this value; lower is better."""
        done = replace(self, validation_due=False)
        # A value that is not a number is never the best, and must not keep later ones from it.
        if math.isfinite(value) and (self.best_value is None or value < self.best_value):
            return replace(done, best_value=value, best_step=self.step, without_progress=0)
        return replace(done, without_progress=self.without_progress + 1)


@dataclass
class Completion:
    """The share of a training that is completed, for what is switched off before the end."""

    share: float = 0.0


@runtime_checkable
class Observer(Protocol):
    """Is told what happens in a training: a display, a log file, TensorBoard."""

    def updated(self, progress: Progress, result: UpdateResult, facts: Mapping[str, float]) -> None:
        """Hear of one update; the facts are learning rate, padding share and the like."""
        ...

    def validated(self, progress: Progress, metrics: Mapping[str, float]) -> None:
        """Hear of one validation."""
        ...

    def finished(self, progress: Progress, reason: str) -> None:
        """Hear that the training is over, and why."""
        ...

    def noted(self, line: str) -> None:
        """Hear of something that a person should know, as "resuming at update 500"."""
        ...


@dataclass(frozen=True)
class Fact:
    """Something known before a training starts: its name and value, and how a person reads it."""

    name: str
    value: Any
    text: str


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """What was read, as its task describes it."""

    facts: tuple[Fact, ...]
    batches: int | None = None
    """The number of batches of an epoch."""
    unit: str = "target tokens"
    """What the size of a batch is counted in."""
    trainings: int = 1
    """How many trainings are made of it, one per seed."""


@runtime_checkable
class StartObserver(Protocol):
    """Is also told what is about to be trained; it must leave it as it is."""

    def starting(self, start: Any) -> None:
        """Hear of a training (a `Start`) before its first update."""
        ...


class Observers:
    """Several observers as one."""

    def __init__(self, observers: Sequence[Observer]):
        self._observers = tuple(observers)

    def starting(self, start: Any) -> None:
        """Pass on what is about to be trained to those who want to know."""
        for observer in self._observers:
            if isinstance(observer, StartObserver):
                observer.starting(start)

    def updated(self, progress: Progress, result: UpdateResult, facts: Mapping[str, float]) -> None:
        """Pass on one update."""
        for observer in self._observers:
            observer.updated(progress, result, facts)

    def validated(self, progress: Progress, metrics: Mapping[str, float]) -> None:
        """Pass on one validation."""
        for observer in self._observers:
            observer.validated(progress, metrics)

    def finished(self, progress: Progress, reason: str) -> None:
        """Pass on the end."""
        for observer in self._observers:
            observer.finished(progress, reason)

    def noted(self, line: str) -> None:
        """Pass on a note."""
        for observer in self._observers:
            observer.noted(line)


SECONDS_TO_NOTICE = 0.5  # an update that ends within them needs no explanation


class StopSignals:
    """While entered, SIGINT and SIGTERM ask a training to stop instead of ending the process.

    The first signal is kept in `received`, or raised as Interrupted inside `at_once`. A second one
    is always raised, and a third ends the process. Outside the main thread signals stay as they
    were.
    """

    def __init__(self, say: Callable[[str], None] = lambda line: None, *, at_once: bool = False):
        self.received: int | None = None
        self._say = say
        self._raises = at_once
        self._before: dict[int, Any] = {}
        self._notice: threading.Timer | None = None

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                if before is not None and before is not signal.SIG_IGN:  # as under nohup
                    self._before[number] = before
                    signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        if self._notice is not None:
            self._notice.cancel()
        for number, before in self._before.items():
            signal.signal(number, before)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let a signal raise Interrupted inside the block, which can be cut off anywhere."""
        if self.received is not None:
            raise Interrupted(number=self.received)
        before, self._raises = self._raises, True
        try:
            yield
        finally:
            self._raises = before

    def _receive(self, number: int, frame: object) -> None:
        again, self.received = self.received is not None, number
        if again:
            for each in self._before:
                signal.signal(each, signal.SIG_DFL)
        if again or self._raises:
            raise Interrupted(number=number)
        # From another thread: this one may be in the middle of writing to the console.
        line = "stopping after this update; Ctrl-C again ends at once, without a checkpoint"
        self._notice = threading.Timer(SECONDS_TO_NOTICE, self._say, [line])
        self._notice.daemon = True
        self._notice.start()


class MetricsLog:
    """Writes a line of JSON for every few updates and every validation."""

    def __init__(self, path: Path, *, every: int = 20, resume_step: int = 0):
        self._path = path
        self._every = every
        # After a crash the file may hold rows beyond the checkpoint that training resumes from.
        rows = [row for row in read_metrics(path) if row["step"] <= resume_step]
        write_file(path, "".join(json.dumps(row) + "\n" for row in rows))

    def updated(self, progress: Progress, result: UpdateResult, facts: Mapping[str, float]) -> None:
        """Write loss, gradient norm and the other facts, once in `every` updates."""
        if progress.skipped_in_a_row:  # JSON has no numbers for these
            found = {"loss": str(result.loss), "norm": str(result.gradient_norm)}
            self._write("skipped", progress, {**found, "skipped": progress.skipped})
        elif progress.step % self._every == 0:
            self._write(
                "train", progress, {"loss": result.loss, "norm": result.gradient_norm, **facts}
            )

    def validated(self, progress: Progress, metrics: Mapping[str, float]) -> None:
        """Write the metrics of a validation."""
        self._write("valid", progress, metrics)

    def finished(self, progress: Progress, reason: str) -> None:
        """Write why the training ended."""
        self._write("end", progress, {"reason": reason})

    def noted(self, line: str) -> None:
        """Do nothing: the rows say it."""

    def _write(self, kind: str, progress: Progress, values: Mapping[str, float | str]) -> None:
        row = {"kind": kind, "step": progress.step, "seconds": round(progress.seconds, 3), **values}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a metrics file; what a crash has cut short or damaged is left out."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if _is_record(row):
            rows.append(row)
    return rows


def _is_record(row: Any) -> bool:
    """Return whether a row has the numbers that every reader relies on."""
    if not isinstance(row, dict) or type(row.get("step")) is not int:
        return False
    return "kind" not in row or isinstance(row.get("seconds"), int | float)


class TensorBoardLog:
    """Sends the same figures to TensorBoard (the extra `tensorboard`)."""

    def __init__(self, folder: Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise SettingsError(
                "training.tensorboard is on but TensorBoard is not installed: "
                "pip install tensorboard"
            ) from error
        self._writer: Any = SummaryWriter(str(folder))

    def updated(self, progress: Progress, result: UpdateResult, facts: Mapping[str, float]) -> None:
        """Log one update."""
        for name, value in {"loss": result.loss, **facts}.items():
            self._writer.add_scalar(f"train/{name}", value, progress.step)

    def validated(self, progress: Progress, metrics: Mapping[str, float]) -> None:
        """Log one validation."""
        for name, value in metrics.items():
            self._writer.add_scalar(f"valid/{name}", value, progress.step)

    def finished(self, progress: Progress, reason: str) -> None:
        """Close the log."""
        self._writer.close()

    def noted(self, line: str) -> None:
        """Do nothing."""
