"""`regard train`: from a recipe to a trained run."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.options import AsJson, Overrides, column_names, print_json

Data = Annotated[
    list[Path] | None,
    typer.Option(
        "--data",
        metavar="FILE...",
        help="What to train on: a file (TSV, CSV, JSONL, TMX, PO, XLIFF, Parquet; .gz too), two "
        "files with a sentence a line, a folder with train.*, valid.* and test.*, or a dataset of "
        "Hugging Face.",
    ),
]
Valid = Annotated[
    list[Path] | None,
    typer.Option("--valid", metavar="FILE...", help="What to validate on; else held out."),
]
Test = Annotated[
    list[Path] | None,
    typer.Option("--test", metavar="FILE...", help="What to test on; else held out."),
]
Mix = Annotated[
    list[Path] | None,
    typer.Option("--mix", metavar="FILE...", help="General data to mix in, against forgetting."),
]
GeneralTest = Annotated[
    list[Path] | None,
    typer.Option("--general-test", metavar="FILE...", help="General data to see forgetting by."),
]


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="RECIPE",
            show_default=False,
            help="A shipped recipe's name, or a .toml file; with --resume the folder of a run.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the run, new or empty.")
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="RUN", help="Fine-tune a run, also an imported one; no recipe needed."
        ),
    ] = None,
    data: Data = None,
    valid: Valid = None,
    test: Test = None,
    mix: Mix = None,
    general_test: GeneralTest = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task", help="What to learn from a language model: continue, answer or classify."
        ),
    ] = None,
    pair: Annotated[
        str | None, typer.Option("--pair", help="Languages from and to, as en-de.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", help="Columns of a table, by name or number: en,de or 1,3."),
    ] = None,
    built_in: Annotated[
        bool, typer.Option("--built-in", help="Train on the built-in data.")
    ] = False,
    minutes: Annotated[
        float | None, typer.Option("--minutes", help="Stop after this many minutes.")
    ] = None,
    overrides: Overrides = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with a stopped training exactly where it was: regard train --resume DIR. "
            "It needs nothing else; --set may change limits.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show the plan (data, size, memory, time) and stop; write nothing."
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Train a model by a recipe.

    Example: regard train transformer-tiny --data pairs.tsv --minutes 10 --out runs/mine

    Example: regard train --from runs/en-pt --data mine.tsv --mix general.tsv --out runs/mine
    """
    from regard.base.errors import SettingsError
    from regard.tasks import train as train_recipe
    from regard.tasks.planning import plan

    parts = {"train": data, "valid": valid, "test": test, "mix": mix, "general_test": general_test}
    given: dict[str, Any] = {
        "data": {part: files for part, files in parts.items() if files} or None,
        "pair": pair,
        "columns": column_names(columns),
        "built_in": built_in,
        "minutes": minutes,
        "start_from": start_from,
        "task": task,
        "set": overrides or [],
    }
    if dry_run:
        if recipe is None and start_from is None:
            raise SettingsError("A plan needs a recipe: regard train RECIPE --dry-run.")
        planned = plan(recipe, **given)
        if json:
            print_json(planned.to_dict())
        else:
            show_lines(str(planned).splitlines())
        return
    show_end(train_recipe(recipe, out=out, resume=resume, **given), json=json)


def show_lines(lines: list[str]) -> None:
    """Print lines, wrapped between words on a terminal."""
    from rich.console import Console

    from regard.runs.display import print_line

    for line in lines:
        print_line(Console(), line)


def show_end(trained: Any, *, json: bool) -> None:
    """Show the results of a training, a picture if there is a terminal, and what to type next."""
    from regard.runs.display import ConsoleDisplay

    display = ConsoleDisplay()
    console = display.console
    for line in ["", *trained.lines()]:
        display.note(line)
    drawn = trained.drawn(console.width) if console.is_terminal else None
    if drawn is not None:
        console.print("\n", drawn, sep="", soft_wrap=True)
    commands = trained.next_commands()
    for line in ["", "Next:", *(f"  {command}" for command in commands)] if commands else []:
        console.print(line, highlight=False, markup=False, soft_wrap=True)  # to be copied
    if json:
        print_json(trained.to_dict())
