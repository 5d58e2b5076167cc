"""A live line on a terminal: a bar, and facts that change; in a log it is silent."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

SECONDS_BETWEEN_LINES = 10.0  # in a log

Line = TypeVar("Line", bound="LiveLine")


class LiveLine:
    """Shows a bar while it is entered; what is done and the facts beside it are the heirs' work."""

    def __init__(self, console: Console, title: str):
        self._console = console
        self._bar = Progress(
            TextColumn(f"[bold]{title}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[facts]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task(title, total=1.0, facts="")

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
