"""Options that several commands share, so that they are the same everywhere."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand

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


# Options that take one file or more.
FILE_OPTIONS = ("--data", "--valid", "--test", "--mix", "--general-test")


def _use(names: list[str] | None) -> None:
    for name in names or ():
        from regard.runs.catalogue import use

        use(name)


def _with_parts(
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="FILE.py",
            is_eager=True,
            expose_value=False,
            callback=_use,
            help="A Python file (or module) with a score, position or task of your own.",
        ),
    ] = None,
) -> None:
    """Declare the option that all commands take over."""


class CommandWithParts(TyperCommand):
    """A command that imports modules with parts of your own before it begins."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        model = typer.Typer(add_completion=False)
        model.command()(_with_parts)
        self.params += typer.main.get_command(model).params


def _with_device(
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="DEVICE",
            help="Where to compute: auto (the default), cpu, cuda, cuda:1, mps or xpu.",
        ),
    ] = None,
) -> None:
    """Declare the option of all commands that compute."""


class ComputingCommand(CommandWithParts):
    """A command that computes on the device of its option, or of the environment."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        model = typer.Typer(add_completion=False)
        model.command()(_with_device)
        self.params += typer.main.get_command(model).params

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a device that is not there is said before anything is read."""
        load_torch()
        from regard.compute.device import computing_on

        with computing_on(ctx.params.pop("device", None)):
            return super().invoke(ctx)


class FilesCommand(ComputingCommand):
    """A command with options that take one file or more, behind its argument if it has one.

    `--data train.en train.de` is the same as `--data train.en --data train.de`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before every further file."""
        valued = {name for p in self.params if not getattr(p, "is_flag", False) for name in p.opts}
        given: list[str] = []
        option, awaited = "", False
        # With --from no recipe is needed; one that is given comes before the files.
        argument = "--from" in args or all(p.param_type_name != "argument" for p in self.params)
        for word in args:
            if awaited:
                awaited = False
            elif word.startswith("-") and word != "-":
                option, awaited = word, word in valued
            elif option in FILE_OPTIONS and argument:
                given.append(option)
            else:
                option, argument = "", True
            given.append(word)
        return super().parse_args(ctx, given)


def load_torch(console: Console | None = None) -> None:
    """Import torch; a terminal sees that the program has begun, for it takes seconds."""
    console = Console(stderr=True) if console is None else console
    with console.status("Starting ...") if console.is_terminal else nullcontext():
        import torch  # noqa: F401


def column_names(given: Sequence[str] | None) -> list[str] | None:
    """Return names of columns; a single text may hold several, separated by commas."""
    if given is None:
        return None
    return [name.strip() for name in given[0].split(",")] if len(given) == 1 else list(given)


def as_json(value: Any) -> str:
    """Return a result for programs to read."""
    return json.dumps(value, ensure_ascii=False, indent=1)


def print_json(value: Any) -> None:
    """Print a result for programs to read."""
    typer.echo(as_json(value))
