"""Options that several commands share, so that they are the same everywhere."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting, as training.steps=500. May be given often.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
RunFolder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a trained run.")]


def as_json(value: Any) -> str:
    """Return a result for programs to read."""
    return json.dumps(value, ensure_ascii=False, indent=1)


def print_json(value: Any) -> None:
    """Print a result for programs to read."""
    typer.echo(as_json(value))
