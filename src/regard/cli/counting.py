"""A bar for work of a known number of steps; plain lines in a log."""

from __future__ import annotations

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
