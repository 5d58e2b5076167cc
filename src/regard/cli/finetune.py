"""`regard finetune`: what a language model has read is put to use for another task."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, Overrides, RunFolder, print_json
from regard.settings.recipe import require_known

if TYPE_CHECKING:
    from regard.tasks.text_classification.model import TrainedTextClassifier

TASKS = ("classify", "continue", "answer")


def finetune(
    run: RunFolder,
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            help="Labelled texts (classify), plain text (continue) or prompt TAB answer (answer).",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the new run, new or empty.")],
    task: Annotated[
        str, typer.Option("--task", help="classify texts, continue with other text, or answer.")
    ] = "classify",
    test: Annotated[
        Path | None, typer.Option("--test", help="Labelled texts to test on (classify).")
    ] = None,
    scratch: Annotated[
        bool,
        typer.Option(" /--no-scratch", help="Leave out the same network from scratch."),
    ] = True,
    overrides: Overrides = None,
    json: AsJson = False,
) -> None:
    """Fine-tune a language model, and show what its pre-training was worth.

    Example: regard finetune runs/book --task classify --data reviews.tsv --out runs/reviews
    """
    require_known(task, TASKS, what="task")
    changes = overrides or []
    if task != "classify":
        if test is not None:
            raise SettingsError("--test is for --task classify.")
        results = _continue(run, data, out, changes, kind="pairs" if task == "answer" else "text")
    else:
        results = _classify(run, data, out, test=test, scratch=scratch, changes=changes)
    if json:
        print_json(results)


def _classify(
    run: Path, data: Path, out: Path, *, test: Path | None, scratch: bool, changes: list[str]
) -> dict[str, Any]:
    """Train the pre-trained network and the same one from scratch, and compare them."""
    from regard.runs.display import ConsoleDisplay
    from regard.runs.run import Run
    from regard.settings.recipe import expect
    from regard.tasks import parse_recipe
    from regard.tasks.text_classification.data import read_labelled_splits
    from regard.tasks.text_classification.model import confusion_lines
    from regard.tasks.text_classification.settings import TextClassificationRecipe
    from regard.tasks.text_classification.training import begin_with, from_scratch, train_one

    files = [f"data.train={_quoted(data)}"] + ([f"data.test={_quoted(test)}"] if test else [])
    parsed = parse_recipe('task = "classify-text"', overrides=[*files, *changes], origin="finetune")
    recipe = begin_with(expect(parsed, TextClassificationRecipe), run)
    scratch_folder = out.with_name(f"{out.name}-scratch")
    for folder in (out, scratch_folder) if scratch else (out,):
        Run.require_free(folder)  # before time is spent on any of them
    splits = read_labelled_splits(recipe.data)
    display = ConsoleDisplay()
    for warning in splits.warnings:
        display.note(f"Warning: {warning}")
    train = partial(train_one, splits=splits, display=display)
    trained = {"pre-trained": train(recipe, out, title="pre-trained")}
    if scratch:
        trained["from scratch"] = train(
            from_scratch(recipe),
            scratch_folder,
            title="from scratch",
            tokenizer_of=run,
        )
    for line in [*_comparison(trained), *confusion_lines(trained["pre-trained"].score)]:
        display.note(line)
    return {name: {"run": str(t.run.folder), **t.score.to_dict()} for name, t in trained.items()}


def _comparison(trained: dict[str, TrainedTextClassifier]) -> list[str]:
    rows = [f"{'':<14}{'accuracy':>10}{'macro-F1':>10}"]
    for name, one in trained.items():
        rows.append(f"{name:<14}{one.score.accuracy:>10.1%}{one.score.macro_f1:>10.3f}")
    return rows


def _continue(run: Path, data: Path, out: Path, changes: list[str], *, kind: str) -> dict[str, Any]:
    """Go on with training on other text, or on prompts with answers."""
    from regard.runs.display import ConsoleDisplay
    from regard.runs.run import Run
    from regard.settings.recipe import recipe_text
    from regard.tasks import parse_recipe
    from regard.tasks.language_modelling.settings import LanguageModelRecipe
    from regard.tasks.language_modelling.training import train

    before = Run.open(run).recipe(LanguageModelRecipe)
    recipe = parse_recipe(
        recipe_text(before),
        overrides=[
            "data.text=[]",
            "data.pairs=[]",
            "data.valid=[]",
            f"data.{kind}={_quoted(data)}",
            f"training.start_from={_quoted(run)}",
            *changes,
        ],
        origin="finetune",
    )
    display = ConsoleDisplay()
    trained = train(recipe, out, title="fine-tuning", display=display)
    for line in trained.lines():
        display.note(line)
    return trained.to_dict()


def _quoted(path: Path) -> str:
    """Return a path as TOML writes it, so that no name is taken for a number or a list."""
    from json import dumps

    return dumps(str(path), ensure_ascii=False)
