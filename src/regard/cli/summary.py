"""`regard summary`: the layers of a model and how many parameters each has."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, Overrides, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from regard.models.inspection import LayerRow


def summary(
    what: Annotated[
        str, typer.Argument(metavar="RECIPE|DIR", help="A recipe's name or file, or a run.")
    ],
    overrides: Overrides = None,
    json: AsJson = False,
) -> None:
    """Show the layers of a model with their parameters.

    Example: regard summary seq2seq-attention --set model.hidden=512
    """
    from regard.models.inspection import layer_table
    from regard.tasks import find_recipe, load, task_of

    if Path(what).is_dir():
        if overrides:
            raise SettingsError("--set has no effect on a run that is already trained.")
        rows = layer_table(load(what).model)
    else:
        recipe = find_recipe(what, overrides=overrides or [])
        rows = layer_table(task_of(recipe.task).build(recipe))
    total = sum(row.parameters for row in rows)
    if json:
        print_json({"parameters": {"total": total}, "layers": [asdict(row) for row in rows]})
        return
    from rich.console import Console

    Console().print(_table(rows, title=what, total=total))


def _table(rows: list[LayerRow], *, title: str, total: int) -> Table:
    """Return the table; models that know how they are connected show that, as Keras does."""
    from rich.table import Table

    wired = any(row.connected_to for row in rows)
    table = Table(title=title, title_justify="left", show_footer=True)
    table.add_column("layer (kind)" if wired else "layer", footer="total")
    table.add_column("output shape" if wired else "kind")
    if not wired:
        table.add_column("shapes of its weights")
    table.add_column("parameters", justify="right", footer=f"{total:,}")
    if wired:
        table.add_column("connected to")
    for row in rows:
        if wired:
            first = f"{row.name} ({row.kind})"
            table.add_row(first, row.output_shape, f"{row.parameters:,}", row.connected_to)
        else:
            table.add_row(row.name, row.kind, row.shape, f"{row.parameters:,}")
    return table
