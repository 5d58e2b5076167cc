"""`regard exercise`: write a part of an attention model, and learn what is wrong with it."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import AsJson, print_json

exercise = typer.Typer(
    no_args_is_help=True,
    help="Write parts of attention models yourself; the check names your mistake.\n\n"
    "Example: regard exercise start causal-mask",
)


@exercise.command("list")
def list_exercises(json: AsJson = False) -> None:
    """List the exercises in the order of the lectures.

    Example: regard exercise list
    """
    from regard.lectures.exercises.catalogue import EXERCISES

    if json:
        print_json({name: {"title": e.title, "topic": e.topic} for name, e in EXERCISES.items()})
        return
    width = max(map(len, EXERCISES))
    for name, each in EXERCISES.items():
        typer.echo(f"{name:<{width}}  {each.title} ({each.topic})")


@exercise.command()
def start(
    name: Annotated[str, typer.Argument(help="The exercise, as causal-mask.")],
    out: Annotated[Path | None, typer.Option("--out", help="File to write.")] = None,
) -> None:
    """Write the file to begin with.

    Example: regard exercise start causal-mask
    """
    from regard.lectures.exercises import catalogue

    path = catalogue.start(name, out)
    typer.echo(f"Wrote {path}. Fill it in, then: regard exercise check {path}")


@exercise.command()
def check(
    file: Annotated[Path, typer.Argument(help="Your solution.")],
    name: Annotated[
        str | None, typer.Option("--name", help="The exercise, if the file does not say it.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Check a solution; exit with 1 and the mistake if there is one.

    Example: regard exercise check causal_mask.py
    """
    from regard.lectures.exercises import catalogue

    verdict = catalogue.check(file, name)
    if json:
        print_json({"exercise": verdict.exercise.name, "mistake": verdict.mistake})
    else:
        typer.echo(str(verdict))
    if not verdict.passed:
        raise typer.Exit(1)
