"""`regard train`: from a recipe to a trained run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import AsJson, Overrides, print_json


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A shipped recipe's name, or a .toml file.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run, new or empty.")],
    overrides: Overrides = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a stopped training exactly where it was.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Train a model by a recipe.

    Example: regard train seq2seq-attention --set data.train=[train.en,train.de] --out runs/mine
    """
    from rich.console import Console

    from regard.cli.display import TrainingDisplay, waiting
    from regard.recipes.catalog import find_recipe
    from regard.recipes.data import read_splits
    from regard.recipes.report import report_runs, results_of
    from regard.recipes.translate import limits_of, open_run, train_translator

    console = Console(stderr=True)
    settings = find_recipe(recipe, overrides=overrides or [])
    splits = read_splits(settings.data)
    run = open_run(out, settings, resume=resume)
    try:
        with TrainingDisplay(console, limits_of(settings.training), title=recipe) as display:
            trained = train_translator(settings, run, splits=splits, observers=[display])
    except KeyboardInterrupt:
        console.print(f"Interrupted. Continue with: regard train {recipe} --out {out} --resume")
        raise
    with waiting(console, "Writing the report ..."):
        report_runs({out.name: trained}, out / "report.html", title=settings.title or recipe)
    if json:
        print_json({"run": str(out), **results_of(trained)})
    else:
        console.print(f"Run: {out}   report: {out / 'report.html'}", highlight=False)
