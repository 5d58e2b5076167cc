"""What is shown while a model trains: a live line on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Timer

from rich.console import Console

from regard.cli.live_line import SECONDS_BETWEEN_LINES, LiveLine
from regard.training.loop import Limits
from regard.training.progress import Progress as TrainingProgress
from regard.training.update import UpdateResult

SECONDS_WORTH_A_LINE = 2.0


class TrainingDisplay(LiveLine):
    """Shows tokens a second, loss, padding share, validation and the time that is left."""

    def __init__(self, console: Console, limits: Limits, *, title: str, unit: str = "tokens"):
        super().__init__(console, title)
        self._unit = unit
        self._limits = limits
        self._recent: deque[tuple[float, int]] = deque(maxlen=50)
        self._last_line = time.monotonic()
        self._valid = ""

    def updated(
        self, progress: TrainingProgress, result: UpdateResult, facts: Mapping[str, float]
    ) -> None:
        """Show one update."""
        self._recent.append((progress.seconds, result.tokens))
        done = max(1e-9, self._limits.done(progress))
        left = progress.seconds * (1 - done) / done
        line = (
            f"step {progress.step:>5}  loss {result.loss:.4g}  "
            f"{self._speed():>6,.0f} {self._unit}/s  "
            f"padding {facts['padding']:.1%}  ETA {int(left) // 60}:{int(left) % 60:02d}"
            f"{self._valid}"
        )
        self._bar.update(self._task, completed=done, facts=line)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            self._print(line)

    def validated(self, progress: TrainingProgress, metrics: Mapping[str, float]) -> None:
        """Show one validation."""
        self._valid = "  " + "  ".join(f"valid {name} {v:.3g}" for name, v in metrics.items())
        star = "  (best so far)" if progress.best_step == progress.step else ""
        self._print(f"step {progress.step:>5}{self._valid}{star}")

    def finished(self, progress: TrainingProgress, reason: str) -> None:
        """Say why it is over."""
        self._print(f"stopped after {progress.seconds:.0f} s: {reason}")

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)

    def _speed(self) -> float:
        """Return target tokens a second over the last updates."""
        (first, _), (last, _) = self._recent[0], self._recent[-1]
        tokens = sum(tokens for _, tokens in list(self._recent)[1:])
        return tokens / (last - first) if last > first else 0.0


@contextmanager
def waiting(console: Console, message: str) -> Iterator[None]:
    """Show that something of unknown length is going on; a log hears of it only if it is long."""
    if console.is_terminal:
        with console.status(message):
            yield
        return
    notice = Timer(SECONDS_WORTH_A_LINE, console.print, [message], {"highlight": False})
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
