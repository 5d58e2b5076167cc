"""How far a training has come, who is told of it, and the records that are kept."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from regard.base.errors import SettingsError
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

    def to_json(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return asdict(self)

    def moved(self, *, to: BatchPosition, seconds: float) -> Progress:
        """Return the progress after one more update, up to this place."""
        return replace(self, step=self.step + 1, epoch=to.epoch, batch=to.batch, seconds=seconds)

    def validated(self, value: float) -> Progress:
        """Return the progress after a validation of this value; lower is better."""
        # A value that is not a number is never the best, and must not keep later ones from it.
        if not math.isnan(value) and (self.best_value is None or value < self.best_value):
            return replace(self, best_value=value, best_step=self.step, without_progress=0)
        return replace(self, without_progress=self.without_progress + 1)


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


class Observers:
    """Several observers as one."""

    def __init__(self, observers: Sequence[Observer]):
        self._observers = tuple(observers)

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
        if progress.step % self._every == 0:
            self._write(
                "train", progress, {"loss": result.loss, "norm": result.gradient_norm, **facts}
            )

    def validated(self, progress: Progress, metrics: Mapping[str, float]) -> None:
        """Write the metrics of a validation."""
        self._write("valid", progress, metrics)

    def finished(self, progress: Progress, reason: str) -> None:
        """Write why the training ended."""
        self._write("end", progress, {"reason": reason})

    def _write(self, kind: str, progress: Progress, values: Mapping[str, float | str]) -> None:
        row = {"kind": kind, "step": progress.step, "seconds": round(progress.seconds, 3), **values}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a metrics file; a last line cut short by a crash is left out."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows


class TensorBoardLog:
    """Sends the same figures to TensorBoard (the extra `tensorboard`)."""

    def __init__(self, folder: Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise SettingsError(
                "training.tensorboard is on but TensorBoard is not installed: "
                "pip install 'regard[tensorboard]'"
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
