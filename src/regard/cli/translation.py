"""The commands of the task `translate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from regard.base.errors import RegardError
from regard.cli.display import TrainingDisplay, waiting
from regard.corpora.parallel import suspicions, vocabulary_suspicion
from regard.models.inspection import LayerRow
from regard.recipes import summary
from regard.recipes.data import Splits, read_splits
from regard.recipes.ready import make_ready
from regard.recipes.report import report_runs, results_of
from regard.recipes.resume import limits_of, open_run
from regard.recipes.run import Run
from regard.recipes.translate import tested, train_translator
from regard.settings.schema import Recipe, expect
from regard.settings.translation import TranslationRecipe


def train(recipe: Recipe, out: Path, *, name: str, resume: bool) -> dict[str, Any]:
    """Train a translator, test it and write its report."""
    settings = expect(recipe, TranslationRecipe)
    console = Console(stderr=True)
    if not resume:
        Run.require_free(out)  # before time is spent on the data
    with waiting(console, "Reading the data ..."):
        splits = read_splits(settings.data)
    for warning in _warnings(settings, splits):
        console.print(f"Warning: {warning}", highlight=False, markup=False, soft_wrap=True)
    run = open_run(out, settings, resume=resume)
    try:
        with TrainingDisplay(console, limits_of(settings.training), title=name) as display:
            trained = train_translator(settings, run, splits=splits, observers=[display])
    except RegardError:
        if not resume:
            run.discard()
        raise
    report = out / "report.html"
    with waiting(console, "Testing ..."):
        make_ready(trained, splits)
        trained = tested(trained, splits.test)
        report_runs({out.name: trained}, report, title=settings.title or name)
    console.print(f"Run: {out}   report: {report}", highlight=False, soft_wrap=True)
    return {"run": str(out), "report": str(report), **results_of(trained)}


def _warnings(settings: TranslationRecipe, splits: Splits) -> list[str]:
    """Return what looks wrong with users' data; the built-in corpus needs no looking at."""
    found = suspicions(splits.train, splits.valid) if settings.data.train else []
    tokenizer = settings.tokenizer
    if tokenizer.size is not None and tokenizer.kind != "character":
        found.append(
            vocabulary_suspicion(splits.train, size=tokenizer.size, shared=tokenizer.shared)
        )
    return [warning for warning in found if warning]


def summarise_recipe(recipe: Recipe) -> list[LayerRow]:
    """Return the layers of the translator that a recipe builds."""
    return summary.summarise_recipe(expect(recipe, TranslationRecipe))


def summarise_run(folder: Path) -> list[LayerRow]:
    """Return the layers of a trained translator."""
    return summary.summarise_run(folder)
