"""`regard trace`: every value on the way from one input to the output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, Overrides, print_json

if TYPE_CHECKING:
    from regard.models.inspection import Trace


def trace(
    what: Annotated[
        str,
        typer.Argument(metavar="DIR|RECIPE", help="A trained run, or a recipe (fresh weights)."),
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A text; for a forecaster a window of numbers, a CSV file, first, last or @40 "
            "(from value 40 on); for a graph a node.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Write all values to this .npz file.")
    ] = None,
    layer: Annotated[
        int | None, typer.Option("--layer", help="Show the inside of this layer, counted from 0.")
    ] = None,
    head: Annotated[int, typer.Option("--head", help="Of this head, counted from 0.")] = 0,
    part: Annotated[
        str | None, typer.Option("--part", help="Of this part only: encoder, decoder, cross, rnn.")
    ] = None,
    step: Annotated[
        int | None, typer.Option("--step", help="Only this row of what attends, counted from 0.")
    ] = None,
    overrides: Overrides = None,
    json: AsJson = False,
) -> None:
    """Show every intermediate value: states, scores, weights, contexts, probabilities.

    With --layer: Q, K, V, Q K^T, scores, mask, weights, Z, feed-forward; gates of cells.

    Example: regard trace fibonacci-attention last

    Example: regard trace runs/demo/transformer "cats like dogs" --part encoder --layer 0 --head 1
    """
    from regard.tasks import find_recipe, trace_recipe, trace_run

    if Path(what).is_dir():
        if overrides:
            raise SettingsError("--set has no effect on a run that is already trained.")
        found = trace_run(Path(what), text)
    else:
        found = trace_recipe(find_recipe(what, overrides=overrides or []), text)
    if out is not None:
        found.save(out)
    if json:
        print_json(found.to_dict())
    elif out is not None:
        typer.echo(f"{found.output}\nWrote {out}")
    elif layer is not None:
        _show_layer(found, layer=layer, part=part, head=head, step=step)
    else:
        _show(found)


def _show_layer(found: Trace, *, layer: int, part: str | None, head: int, step: int | None) -> None:
    """Print one value below the other, each with its formula, in 80 columns."""
    for title, table in found.layer_tables(layer=layer, part=part, head=head, step=step):
        rows = [table.columns, *table.rows]
        widths = [min(12, max(len(row[place]) for row in rows)) for place in range(len(rows[0]))]
        typer.echo(title)
        for row in rows:
            first, *others = (cell[:12] for cell in row)
            cells = [
                cell.rjust(max(width, 5)) for cell, width in zip(others, widths[1:], strict=True)
            ]
            typer.echo(" ".join([f"  {first:<{widths[0]}}", *cells]).rstrip())
        typer.echo("")


def _show(found: Trace) -> None:
    """Print the tables, then the formulas and the parts that were left out of them."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if not console.is_terminal:  # a pipe or a file has room for every digit
        console = Console(width=400)
    for each in found.tables():
        table = Table(
            title=f"by {each.axis}",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        for place, heading in enumerate(each.columns):
            table.add_column(escape(heading), justify="left" if place == 0 else "right")
        for row in each.rows:
            table.add_row(*(escape(cell) for cell in row))
        console.print(table)
    for array in found.arrays:
        shape = " x ".join(array.axes)
        console.print(f"{array.name:<18}{array.formula:<52}{shape}", markup=False, highlight=False)
    console.print(f"output: {found.output}", markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"--json and --out FILE.npz hold everything, with what each of {len(found.parts)} parts "
        "of the model returned.",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
