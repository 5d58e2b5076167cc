"""What is shown while long work goes on: a live line on a terminal, plain lines in a log."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from threading import Timer
from types import TracebackType
from typing import Protocol, TypeVar, runtime_checkable

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from regard.runs.plan import PlanMade, plan_of
from regard.training.objective import Limits, Start
from regard.training.progress import Observer, Observers
from regard.training.progress import Progress as TrainingProgress
from regard.training.update import UpdateResult

SECONDS_BETWEEN_LINES = 10.0  # in a log
SECONDS_WORTH_A_LINE = 2.0
WIDE = 100  # columns of a terminal with room for everything
DEEPEST = 14  # columns that the second line of a row may be indented

Line = TypeVar("Line", bound="LiveLine")


def print_line(console: Console, line: str) -> None:
    """Print a line as it is; on a terminal it is wrapped between words.

    The text of a row, as `memory      about 20 MB`, goes on below its beginning.
    """
    text = Text(line)
    found = re.match(r" *\S+ {2,}", line)
    indent = found.end() if found and found.end() <= DEEPEST else 0
    if not console.is_terminal or text.cell_len <= console.width or console.width < 3 * DEEPEST:
        console.print(text, soft_wrap=True)
        return
    for number, part in enumerate(text[indent:].wrap(console, console.width - indent)):
        before = Text(" " * indent) if number else text[:indent]
        console.print(before + part, soft_wrap=True)


def shortened(text: str, longest: int) -> str:
    """Return a text, cut to `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


class LiveLine:
    """Shows a bar while it is entered; subclasses say what is done, with some facts."""

    def __init__(self, console: Console, title: str):
        self._console = console
        wide = console.width >= WIDE
        longest, bar = (24, 20) if wide else (12, 10)
        self._room = longest + bar + (11 if wide else 3)  # what is not left for the facts
        self._bar = Progress(
            TextColumn(shortened(title, longest), style="bold", markup=False),
            BarColumn(bar_width=bar),
            TextColumn("{task.fields[facts]}", markup=False),
            *([TimeElapsedColumn()] if wide else []),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task(title, total=1.0, facts="")

    def _move(self, done: float, facts: Sequence[str]) -> None:
        """Show how much is done, and as many of the facts as fit, the first ones first."""
        room, shown = self._console.width - self._room, ""
        for fact in facts:
            longer = f"{shown}  {fact}" if shown else fact
            if len(longer) > room:
                break
            shown = longer
        self._bar.update(self._task, completed=done, facts=shown)

    def __enter__(self: Line) -> Line:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()


class TrainingDisplay(LiveLine):
    """Shows tokens a second, loss, padding share, validation and the time that is left."""

    def __init__(self, console: Console, limits: Limits, *, title: str, unit: str = "tokens"):
        super().__init__(console, title)
        self._unit = unit
        self._limits = limits
        self._recent: deque[tuple[float, int]] = deque(maxlen=50)
        self._last_line = time.monotonic()
        self._valid: list[str] = []

    def starting(self, start: Start) -> None:
        """Show the plan of a training whose data was described."""
        if start.objective.read is not None:
            for line in str(plan_of(start)).splitlines():
                self._print(line)

    def updated(
        self, progress: TrainingProgress, result: UpdateResult, facts: Mapping[str, float]
    ) -> None:
        """Show one update."""
        self._recent.append((progress.seconds, result.tokens))
        done = max(1e-9, self._limits.done(progress))
        left = progress.seconds * (1 - done) / done
        parts = [
            f"step {progress.step:>5}",
            f"loss {result.loss:.4g}",
            f"ETA {int(left) // 60}:{int(left) % 60:02d}",
            f"{self._speed():>6,.0f} {self._unit}/s",
            *self._valid,
            f"padding {facts['padding']:.1%}",
        ]
        self._move(done, parts)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            self._print("  ".join(parts))

    def validated(self, progress: TrainingProgress, metrics: Mapping[str, float]) -> None:
        """Show one validation."""
        self._valid = [f"valid {name} {value:.3g}" for name, value in metrics.items()]
        star = ["(best so far)"] if progress.best_step == progress.step else []
        self._print("  ".join([f"step {progress.step:>5}", *self._valid, *star]))

    def finished(self, progress: TrainingProgress, reason: str) -> None:
        """Say why it is over."""
        self._print(f"stopped after {progress.seconds:.0f} s: {reason}")

    def noted(self, line: str) -> None:
        """Show a note."""
        self._print(line)

    def _print(self, line: str) -> None:
        print_line(self._console, line)

    def _speed(self) -> float:
        """Return target tokens a second over the last updates."""
        (first, _), (last, _) = self._recent[0], self._recent[-1]
        tokens = sum(tokens for _, tokens in list(self._recent)[1:])
        return tokens / (last - first) if last > first else 0.0


class QuietDisplay(TrainingDisplay):
    """Shows how a training ended but not every validation: full-batch training has thousands."""

    def validated(self, progress: TrainingProgress, metrics: Mapping[str, float]) -> None:
        """Show nothing."""


@runtime_checkable
class Watcher(Protocol):
    """Is told how far a long translation is."""

    def moved(self, lines: int, share: float | None) -> None:
        """Hear how many lines are done, and what share of the input if that is known."""
        ...


@runtime_checkable
class Display(Protocol):
    """What a training is told to show: a console, a notebook, nothing."""

    def waiting(self, message: str) -> AbstractContextManager[None]:
        """Show that something of unknown length is going on."""
        ...

    def training(
        self, limits: Limits, *, title: str, unit: str = "tokens", quiet: bool = False
    ) -> AbstractContextManager[Observer]:
        """Return an observer that is shown while entered; a quiet one leaves validations out."""
        ...

    def translating(self, title: str = "Translating") -> AbstractContextManager[Watcher]:
        """Return what is told how many lines are translated."""
        ...

    def note(self, line: str) -> None:
        """Show a line of plain text."""
        ...


class ConsoleDisplay:
    """Shows everything on a console, standard error by default."""

    def __init__(self, console: Console | None = None):
        self.console = Console(stderr=True) if console is None else console

    def waiting(self, message: str) -> AbstractContextManager[None]:
        """Show a spinner on a terminal; a log hears of it only if it takes long."""
        return waiting(self.console, message)

    def training(
        self, limits: Limits, *, title: str, unit: str = "tokens", quiet: bool = False
    ) -> AbstractContextManager[Observer]:
        """Return a live line."""
        kind = QuietDisplay if quiet else TrainingDisplay
        return kind(self.console, limits, title=title, unit=unit)

    def translating(self, title: str = "Translating") -> AbstractContextManager[Watcher]:
        """Return a live line."""
        return BulkDisplay(self.console, title)

    def note(self, line: str) -> None:
        """Print the line as it is."""
        print_line(self.console, line)


class SilentDisplay:
    """Shows nothing."""

    def waiting(self, message: str) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def training(
        self, limits: Limits, *, title: str, unit: str = "tokens", quiet: bool = False
    ) -> AbstractContextManager[Observer]:
        """Return an observer of nothing."""
        return nullcontext(Observers([]))

    def translating(self, title: str = "Translating") -> AbstractContextManager[Watcher]:
        """Return a watcher of nothing."""
        return nullcontext(_Nobody())

    def note(self, line: str) -> None:
        """Do nothing."""


class DryRunDisplay(SilentDisplay):
    """Ends a training right before it starts, by `PlanMade`; until then it shows what another does.

    A plan is made, not shown: it shows itself.
    """

    def __init__(self, shown: Display):
        self._shown = shown
        self.reasons: tuple[str, ...] = ()
        """Why the settings are as they are, where they were chosen by the data."""

    def waiting(self, message: str) -> AbstractContextManager[None]:
        """Show that something of unknown length is going on."""
        return self._shown.waiting(message)

    def translating(self, title: str = "Translating") -> AbstractContextManager[Watcher]:
        """Show how far a reading is."""
        return self._shown.translating(title)

    def note(self, line: str) -> None:
        """Show a line of plain text."""
        self._shown.note(line)

    def training(
        self, limits: Limits, *, title: str, unit: str = "tokens", quiet: bool = False
    ) -> AbstractContextManager[Observer]:
        """Return an observer that lets no training start."""
        return nullcontext(_DryRun(title))


class _DryRun(Observers):
    def __init__(self, title: str):
        super().__init__([])
        self._title = title

    def starting(self, start: Start) -> None:
        """End here."""
        raise PlanMade(replace(plan_of(start), title=self._title))


class _Nobody:
    def moved(self, lines: int, share: float | None) -> None:
        """Do nothing."""


def display_of(progress: bool | Display) -> Display:
    """Return what shows a training: a display that is given, the console, or nothing."""
    if isinstance(progress, bool):
        return ConsoleDisplay() if progress else SilentDisplay()
    return progress


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


class BulkDisplay(LiveLine):
    """Shows lines, lines a second, and the time that is left where the input's size is known."""

    def __init__(self, console: Console, title: str = "Translating"):
        super().__init__(console, title)
        self._title = title
        self._start = time.monotonic()
        # A log hears of it soon, then from time to time.
        self._last_line = self._start + SECONDS_WORTH_A_LINE - SECONDS_BETWEEN_LINES
        self._first: tuple[int, float] | None = None

    def moved(self, lines: int, share: float | None) -> None:
        """Show how many lines are done."""
        now = time.monotonic()
        if self._first is None:  # a resumed work begins in the middle
            self._first = (lines, share or 0.0)
        facts = self._facts(lines, share, now - self._start)
        self._move(share or 0.0, facts)
        if not self._console.is_terminal and now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            print_line(self._console, f"{self._title}: {'  '.join(facts)}")

    def _facts(self, lines: int, share: float | None, seconds: float) -> list[str]:
        first_line, first_share = self._first or (0, 0.0)
        speed = (lines - first_line) / seconds if seconds > 0 else 0.0
        shown = [f"{lines:,} lines", f"{speed:,.0f} lines/s"]
        if share is None or share <= first_share:
            return shown
        left = int(seconds * (1 - share) / (share - first_share))
        eta = f"ETA {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}"
        return [*shown, f"{share:.1%}", eta]


@contextmanager
def counting(console: Console, total: int) -> Iterator[Callable[[str, int], None]]:
    """Yield a function to be told the name of a part and its step; each part has `total` steps."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as bar:
        tasks: dict[str, TaskID] = {}

        def on_step(name: str, step: int) -> None:
            if name not in tasks:
                if not console.is_terminal:
                    console.print(f"training {name} ...", highlight=False)
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=step)

        yield on_step
