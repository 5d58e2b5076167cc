"""Several translators trained one after another on the same data, each shown as it learns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from regard.cli.display import TrainingDisplay, waiting
from regard.recipes.data import read_splits
from regard.recipes.ready import make_ready
from regard.recipes.report import report_runs
from regard.recipes.resume import finish_or_start, limits_of
from regard.recipes.translate import Trained, tested, train_translator
from regard.settings.translation import TranslationRecipe


def train_several(
    console: Console, recipes: Mapping[str, TranslationRecipe], folder: Path
) -> dict[str, Trained]:
    """Train, test and report every recipe in a folder of its name.

    What was stopped goes on, what is done stays. All recipes must name the same data: it is read
    once.
    """
    with waiting(console, "Reading the data ..."):
        splits = read_splits(next(iter(recipes.values())).data)
    trained = {}
    for number, (name, recipe) in enumerate(recipes.items(), start=1):
        console.print(
            f"\n[bold]{number}/{len(recipes)} {recipe.title}[/]: "
            f"{len(splits.train):,} sentence pairs",
            highlight=False,
        )
        with TrainingDisplay(console, limits_of(recipe.training), title=name) as display:
            run = finish_or_start(folder / name, recipe)
            result = train_translator(recipe, run, splits=splits, observers=[display])
        with waiting(console, "Testing ..."):
            make_ready(result, splits)
            trained[name] = tested(result, splits.test)
            report_runs({name: trained[name]}, run.folder / "report.html", title=recipe.title)
    return trained
