"""`regard gradients`: the vanishing gradient made visible, and the short path of attention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import AsJson, print_json

if TYPE_CHECKING:
    from regard.studies.gradients import Reach

MOMENTS = {False: "at initialisation", True: "after training"}


def gradients(
    length: Annotated[int, typer.Option("--length", min=2, help="Tokens per sequence.")] = 40,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Updates for each network.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Of weights and examples.")] = 1,
    out: Annotated[
        Path, typer.Option("--out", help="Picture of the curves (.png, .svg or .pdf).")
    ] = Path("gradients.png"),
    json: AsJson = False,
) -> None:
    """Measure how strongly a loss depends on the state n steps before it.

    The task: one token of a sequence is marked; say at the end which. Attention stands on the
    same tanh RNN. Example: regard gradients --length 60 --out gradients.svg
    """
    from rich.console import Console

    from regard.pictures.studies import draw_gradients
    from regard.runs.display import counting
    from regard.studies.gradients import measure

    with counting(Console(stderr=True), steps) as on_step:
        found = list(measure(length=length, steps=steps, seed=seed, on_step=on_step))
    panels = {
        moment: {reach.name: reach.norms for reach in found if reach.trained == trained}
        for trained, moment in MOMENTS.items()
    }
    draw_gradients(panels, out, title="How far back is the loss felt?")
    if json:
        print_json({"length": length, "steps": steps, "picture": str(out),
                    "networks": [reach.to_dict() for reach in found]})  # fmt: skip
        return
    _show(found, length)
    typer.echo(f"Wrote {out}")


def _show(found: list[Reach], length: int) -> None:
    from rich.console import Console
    from rich.table import Table

    distances = sorted({0, length // 4, length // 2, 3 * length // 4, length - 1})
    table = Table(title="norm of d loss / d state, by distance in steps", title_justify="left")
    table.add_column("network")
    table.add_column("")
    for distance in distances:
        table.add_column(str(distance), justify="right")
    table.add_column("accuracy", justify="right")
    for reach in found:
        norms = [f"{reach.norms[distance]:.2g}" for distance in distances]
        table.add_row(reach.name, MOMENTS[reach.trained], *norms, f"{reach.accuracy:.1%}")
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)
