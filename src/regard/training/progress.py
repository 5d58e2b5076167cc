"""How far a training has come, and those who want to hear of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, runtime_checkable

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

    def judged(self, value: float) -> Progress:
        """Return the progress after a validation of this value; lower is better."""
        # A value that is not a number is no progress, nor may it stand in the way of any.
        if not math.isnan(value) and (self.best_value is None or value < self.best_value):
            return replace(self, best_value=value, best_step=self.step, without_progress=0)
        return replace(self, without_progress=self.without_progress + 1)


@dataclass
class Done:
    """Which share of a training is done, kept up to date for what ends before the training does."""

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
