"""`regard train`: from a recipe to a trained run."""

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
    from regard.tasks import train as train_recipe

    try:
        trained = train_recipe(recipe, out=out, set=overrides or [], resume=resume)
    except KeyboardInterrupt:
        typer.echo("Interrupted. Give the same command with --resume to continue.", err=True)
        raise typer.Exit(130) from None
    for line in trained.lines():
        typer.echo(line, err=True)
    if json:
        print_json(trained.to_dict())
