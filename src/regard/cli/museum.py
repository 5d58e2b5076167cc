"""`regard museum`: models with a classic bug each, to find with `look` and `trace`."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import AsJson, ComputingCommand, Overrides, print_json

museum = typer.Typer(
    no_args_is_help=True,
    help="Models with one classic bug each: find it with look and trace.\n\n"
    "Example: regard museum visit ticket --out runs/ticket",
)
Name = Annotated[str, typer.Argument(help="The exhibit, as ticket.")]


@museum.command("list")
def list_exhibits(json: AsJson = False) -> None:
    """List the exhibits with what one sees of their bugs.

    Example: regard museum list
    """
    from regard.lectures.museum import EXHIBITS

    if json:
        print_json({name: each.symptom for name, each in EXHIBITS.items()})
        return
    width = max(map(len, EXHIBITS))
    for name, each in EXHIBITS.items():
        typer.echo(f"{name:<{width}}  {each.symptom}")


@museum.command(cls=ComputingCommand)
def visit(
    name: Name,
    out: Annotated[Path, typer.Option("--out", help="Folder of the run, new or empty.")],
    overrides: Overrides = None,
) -> None:
    """Train an exhibit (a minute at most) and say what to look at.

    Example: regard museum visit ticket --out runs/ticket
    """
    from regard.lectures import museum as exhibits
    from regard.runs.run import quoted

    exhibit = exhibits.exhibit_named(name)
    trained = exhibits.open_exhibit(name, out, changes=overrides or ())
    lines = [*trained.lines(), "", exhibit.symptom, "Why? Look:"]
    lines += [f"  {command.replace('RUN', quoted(out))}" for command in exhibit.commands]
    lines += ["", f"When you know: regard museum answer {name}"]
    for line in lines:
        typer.echo(line)


@museum.command()
def answer(name: Name) -> None:
    """Say what is wrong with an exhibit.

    Example: regard museum answer ticket
    """
    from regard.lectures.museum import exhibit_named

    typer.echo(exhibit_named(name).answer)
