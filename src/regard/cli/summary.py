"""`regard summary`: the layers of a model, their shapes and parameters, and a diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import AsJson, Overrides, print_json

if TYPE_CHECKING:
    from rich.table import Table


WIDE = 110  # columns of a terminal in which shapes have room for their batch


def summary(
    what: Annotated[
        str, typer.Argument(metavar="RECIPE|DIR", help="A recipe's name or file, or a run.")
    ],
    overrides: Overrides = None,
    diagram: Annotated[
        Path | None,
        typer.Option("--diagram", metavar="FILE", help="Draw the model (.svg, .png, .pdf)."),
    ] = None,
    weights: Annotated[
        bool, typer.Option("--weights", help="List the matrices with their shapes instead.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show the layers of a model: output shape, parameters, bytes, and what feeds each.

    Example: regard summary seq2seq-attention --set model.hidden=512 --diagram model.svg
    """
    from regard.tasks import architecture

    found = architecture.summary(what, set=overrides or ())
    if diagram is not None:
        found.save(diagram)
    if json:
        print_json(found.to_dict())
        return
    from rich.console import Console

    console = Console()
    columns: Sequence[str] = architecture.COLUMNS
    sections: Mapping[str, Sequence[Sequence[str]]] = found.sections(
        with_batch=console.width >= WIDE
    )
    if weights:
        columns = ("part", "kind", "shapes of its weights", "parameters")
        rows = [(row.name, row.kind, row.shape, f"{row.parameters:,}") for row in found.weights]
        sections = {"": rows}
    table = _table(columns, sections, title=found.name, caption=found.totals())
    console.print(table)
    if diagram is not None:
        typer.echo(f"Wrote {diagram}")


def _table(
    columns: Sequence[str],
    sections: Mapping[str, Sequence[Sequence[str]]],
    *,
    title: str,
    caption: str,
) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", caption=caption, caption_justify="left", box=SIMPLE_HEAD
    )
    for name in columns:
        right = name in ("parameters", "bytes")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for section, rows in sections.items():
        if section:
            table.add_row(f"[bold]{section}[/]")
        for row in rows:
            table.add_row(*row)
    return table
