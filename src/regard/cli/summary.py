"""`regard summary`: the layers of a model and how many parameters each has."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, Overrides, print_json


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
    from regard.cli.tasks import commands_of
    from regard.recipes.catalog import find_recipe
    from regard.recipes.run import Run

    if Path(what).is_dir():
        if overrides:
            raise SettingsError("--set has no effect on a run that is already trained.")
        rows = commands_of(Run.open(Path(what)).task).summarise_run(Path(what))
    else:
        recipe = find_recipe(what, overrides=overrides or [])
        rows = commands_of(recipe.task).summarise_recipe(recipe)
    total = sum(row.parameters for row in rows)
    if json:
        print_json({"parameters": {"total": total}, "layers": [asdict(row) for row in rows]})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=what, title_justify="left", show_footer=True)
    table.add_column("layer", footer="total")
    table.add_column("kind")
    table.add_column("shapes of its weights")
    table.add_column("parameters", justify="right", footer=f"{total:,}")
    for row in rows:
        table.add_row(row.name, row.kind, row.shape, f"{row.parameters:,}")
    Console().print(table)
