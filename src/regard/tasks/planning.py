"""Before a training: what it would take, and a recipe chosen by the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.runs.display import Display, DryRunDisplay, display_of
from regard.runs.plan import PlanMade, TrainingPlan
from regard.runs.run import Run
from regard.settings.recipe import Recipe
from regard.tasks import AUTO, TASKS, task_of, train, validate_recipe


@dataclass(frozen=True)
class AutoChoice:
    """A recipe chosen by the data and a time limit, the data as it was read, and the reasons."""

    recipe: Recipe
    data: Any
    reasons: tuple[str, ...]


def plan(
    recipe: str | Path | Recipe, *, progress: bool | Display = True, **options: Any
) -> TrainingPlan:
    """Return what a training would read and take, without training: `regard train --dry-run`.

    The options are those of `train`. The data is read and a few updates are measured; nothing is
    written.

    >>> print(regard.plan("transformer-tiny", data={"train": pairs}))
    """
    display = DryRunDisplay(display_of(progress))
    with TemporaryDirectory(prefix="regard-plan-") as folder:
        out = Path(folder) / "run"
        try:
            train(recipe, out=out, progress=display, **options)
        except PlanMade as made:
            table = Run.open(out).table
            chosen = validate_recipe(table, origin="recipe")
            return replace(made.plan, recipe=chosen, reasons=display.reasons)
    raise RunError("The training ended before it could be planned.")


def choose(recipe: Recipe, data: Any, *, display: Display) -> AutoChoice:
    """Return what suits the data and the minutes, where the recipe has nothing but these."""
    task = task_of(recipe.task)
    if task.auto is None:
        known = [name for name in TASKS if task_of(name).auto is not None]
        raise SettingsError(
            f"{AUTO!r} cannot choose for the task {recipe.task!r} (it can for {', '.join(known)}): "
            "name a recipe; `regard recipes` lists them."
        )
    minutes = getattr(getattr(recipe, "training", None), "minutes", None)
    if minutes is None:
        raise SettingsError(f"{AUTO!r} chooses by data and time: give the time, as --minutes 10.")
    with display.waiting("Choosing a recipe ..."):
        found = task.auto(recipe, data, minutes=minutes)
    if isinstance(display, DryRunDisplay):
        display.reasons = found.reasons
    else:
        for reason in found.reasons:
            display.note(f"auto: {reason}")
    return found
