"""The program `regard`: its commands, and one sentence instead of a traceback for a mistake."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from regard import __version__
from regard.base.errors import Interrupted, RegardError, system_problem
from regard.cli.classify import classify
from regard.cli.compare import compare
from regard.cli.corpus import corpus
from regard.cli.demo import demo
from regard.cli.exercise import exercise
from regard.cli.explain import explain
from regard.cli.export import export
from regard.cli.finetune import finetune
from regard.cli.forecast import forecast
from regard.cli.generate import generate
from regard.cli.gradients import gradients
from regard.cli.illustrate import illustrate
from regard.cli.import_ import import_
from regard.cli.intervene import intervene
from regard.cli.ladder import ladder
from regard.cli.lecture import lecture
from regard.cli.look import look
from regard.cli.museum import museum
from regard.cli.options import CommandWithParts, ComputingCommand, FilesCommand, load_torch
from regard.cli.plan import plan
from regard.cli.rate import rate
from regard.cli.recipes import recipes
from regard.cli.score import score
from regard.cli.serve import serve
from regard.cli.study import study
from regard.cli.summary import summary
from regard.cli.trace import trace
from regard.cli.train import train
from regard.cli.translate import translate
from regard.cli.tune import tune

# How often a thread with nothing to do looks for work before it sleeps. By itself the OpenMP that
# torch has looks 300,000 times: next to another busy program, threads then wait for each other at
# every operation, and a small training took 16 times as long as with this.
LOOKS = 2_000

NO_MEMORY = "can't allocate memory"  # in the errors of torch
MEMORY_FULL = (
    "The memory is full. Use a smaller model, smaller batches or shorter input, or close other "
    "programs."
)

# Commands that can do without it, and begin at once.
WITHOUT_TORCH = (recipes, score)
# Commands that read, write or draw, and have no model compute.
WITHOUT_DEVICE = (*WITHOUT_TORCH, import_, illustrate, summary)

app = typer.Typer(
    name="regard",
    help="Train, run, measure and see attention models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"regard {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Train, run, measure and see attention models."""


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that says how to go on after a signal, and exits with its code."""

    @wraps(command)
    def run(**options: Any) -> None:
        try:
            if command not in WITHOUT_TORCH:
                load_torch()
            command(**options)
        except KeyboardInterrupt as stop:
            typer.echo(str(stop) or "Interrupted.", err=True)
            raise typer.Exit(stop.exit_code if isinstance(stop, Interrupted) else 130) from None

    return run


for command in (
    demo,
    train,
    plan,
    translate,
    forecast,
    generate,
    finetune,
    classify,
    import_,
    export,
    score,
    tune,
    compare,
    serve,
    rate,
    look,
    trace,
    intervene,
    explain,
    ladder,
    lecture,
    illustrate,
    gradients,
    summary,
    recipes,
):
    kind: type[CommandWithParts] = ComputingCommand
    if command in WITHOUT_DEVICE:
        kind = CommandWithParts
    elif command in (train, plan):
        kind = FilesCommand
    app.command(command.__name__.rstrip("_"), cls=kind)(_interruptible(command))
app.add_typer(corpus, name="corpus")
app.add_typer(exercise, name="exercise")
app.add_typer(study, name="study")
app.add_typer(museum, name="museum")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    It exits with 2 for a user's mistake and for what the operating system refuses, with 1 if the
    memory is full, and with 130 for an interruption.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(LOOKS))  # read when torch is imported
    try:
        app(arguments)
    except RegardError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output, say `head`, has seen enough
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        typer.echo(f"Error: {system_problem(error)}", err=True)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and NO_MEMORY not in str(error):
            raise
        typer.echo(f"Error: {MEMORY_FULL}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        sys.exit(130)
