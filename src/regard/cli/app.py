"""The program `regard`: its commands, and one sentence instead of a traceback for a mistake."""

import os
import sys
from typing import Annotated

import typer

from regard import __version__
from regard.base.errors import RegardError
from regard.cli.classify import classify
from regard.cli.compare import compare
from regard.cli.corpus import corpus
from regard.cli.demo import demo
from regard.cli.export import export
from regard.cli.finetune import finetune
from regard.cli.forecast import forecast
from regard.cli.generate import generate
from regard.cli.gpt2 import import_gpt2
from regard.cli.gradients import gradients
from regard.cli.ladder import ladder
from regard.cli.look import look
from regard.cli.rate import rate
from regard.cli.recipes import recipes
from regard.cli.score import score
from regard.cli.serve import serve
from regard.cli.summary import summary
from regard.cli.trace import trace
from regard.cli.train import train
from regard.cli.translate import translate
from regard.cli.tune import tune

# How often a thread with nothing to do looks for work before it sleeps. By itself the OpenMP that
# torch has looks 300,000 times: next to another busy program, threads then wait for each other at
# every operation, and a small training took 16 times as long as with this.
LOOKS = 2_000

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


for command in (
    demo,
    train,
    translate,
    forecast,
    generate,
    finetune,
    classify,
    import_gpt2,
    export,
    score,
    tune,
    compare,
    serve,
    rate,
    look,
    trace,
    ladder,
    gradients,
    summary,
    recipes,
    corpus,
):
    app.command()(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exit with 2 for a user's mistake and 130 for an interruption."""
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
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        sys.exit(130)
