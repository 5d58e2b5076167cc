"""`regard ladder`: from gated recurrence to attention, rung by rung, on one task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import AsJson, print_json

if TYPE_CHECKING:
    from regard.studies.ladder import Climbed


def ladder(
    steps: Annotated[int, typer.Option("--steps", min=1, help="Updates for each rung.")] = 1_000,
    seed: Annotated[int, typer.Option(min=0, help="Of weights and examples.")] = 1,
    out: Annotated[
        Path, typer.Option("--out", help="Picture of the result (.png, .svg or .pdf).")
    ] = Path("ladder.png"),
    json: AsJson = False,
) -> None:
    """Train each rung between a gated recurrence and attention on the same task.

    The task: pairs (key, value) are read, keys come again and again; which value did this key
    have last? Example: regard ladder --out ladder.svg
    """
    import torch
    from rich.console import Console

    from regard.runs.display import counting
    from regard.studies.ladder import RecallTask, climb

    task = RecallTask()
    with counting(Console(stderr=True), steps) as on_step:
        climbed = list(climb(steps=steps, seed=seed, task=task, on_step=on_step))
    unordered = task.without_order(20_000, torch.Generator().manual_seed(seed))
    _draw(climbed, out, chance=task.chance, unordered=unordered)
    if json:
        print_json(
            {
                "chance": task.chance,
                "best_without_order": unordered,
                "rungs": [rung.to_dict() for rung in climbed],
                "picture": str(out),
            }
        )
        return
    _show(climbed)
    typer.echo(
        f"Guessing gives {task.chance:.0%}; knowing all pairs but not their order {unordered:.0%}."
    )
    typer.echo(f"Wrote {out}")


def _show(climbed: list[Climbed]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="the ladder", title_justify="left")
    for heading in ("rung", "what is new", "formula"):
        table.add_column(heading)
    for heading in ("accuracy", "parameters", "seconds"):
        table.add_column(heading, justify="right")
    for rung in climbed:
        table.add_row(
            str(rung.number),
            rung.name,
            escape(rung.formula),
            f"{rung.accuracy:.1%}",
            f"{rung.parameters:,}",
            f"{rung.seconds:.1f}",
        )
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)


def _draw(climbed: list[Climbed], out: Path, *, chance: float, unordered: float) -> None:
    from regard.pictures.studies import LadderBar, draw_ladder

    bars = [
        LadderBar(
            f"{rung.number}  {rung.name}",
            rung.formula,
            rung.accuracy,
            f"{rung.parameters:,} parameters, {rung.seconds:.0f} s",
        )
        for rung in climbed
    ]
    draw_ladder(
        bars,
        out,
        levels=[("guessing", chance), ("best without order", unordered)],
        title="From gated recurrence to attention: which value did this key have last?",
    )
