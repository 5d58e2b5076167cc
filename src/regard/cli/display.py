"""What is shown while work goes on: a live line on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from regard.runs.display import SECONDS_BETWEEN_LINES, LiveLine


class BulkDisplay(LiveLine):
    """Shows lines, lines a second, and the time that is left where the input's size is known."""

    def __init__(self, console: Console):
        super().__init__(console, "Translating")
        self._start = self._last_line = time.monotonic()
        self._first: tuple[int, float] | None = None

    def moved(self, lines: int, share: float | None) -> None:
        """Show how many lines are done."""
        now = time.monotonic()
        if self._first is None:  # a resumed work begins in the middle
            self._first = (lines, share or 0.0)
        facts = self._facts(lines, share, now - self._start)
        self._bar.update(self._task, completed=share or 0.0, facts=facts)
        if not self._console.is_terminal and now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            self._console.print(facts, highlight=False, soft_wrap=True)

    def _facts(self, lines: int, share: float | None, seconds: float) -> str:
        first_line, first_share = self._first or (0, 0.0)
        speed = (lines - first_line) / seconds if seconds > 0 else 0.0
        shown = f"{lines:,} lines  {speed:,.0f} lines/s"
        if share is None or share <= first_share:
            return shown
        left = int(seconds * (1 - share) / (share - first_share))
        return f"{shown}  {share:.1%}  ETA {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}"


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

        def told(name: str, step: int) -> None:
            if name not in tasks:
                if not console.is_terminal:
                    console.print(f"training {name} ...", highlight=False)
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=step)

        yield told
