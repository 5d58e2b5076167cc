"""Before a training: what it would take, and a recipe chosen by the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.runs.display import Display, DryRunDisplay, display_of
from regard.runs.plan import PlanMade, TrainingPlan
from regard.runs.run import Run
from regard.runs.scaling import Hardware, ScaledPlan, scaled
from regard.settings.recipe import AnySettings, Recipe, require_known
from regard.tasks import AUTO, TASKS, find_recipe, task_of, train, validate_recipe


@dataclass(frozen=True)
class AutoChoice:
    """A recipe chosen by the data and a time limit, the data as it was read, and the reasons."""

    recipe: Recipe
    data: Any
    reasons: tuple[str, ...]


def plan(
    recipe: str | Path | Recipe | None = None, *, progress: bool | Display = True, **options: Any
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


def plan_on(
    hardware: Hardware,
    recipe: str | Path | Recipe | None = None,
    *,
    progress: bool | Display = True,
    **options: Any,
) -> ScaledPlan:
    """Return what a training would take on several devices and machines: `regard plan`.

    Nothing but this machine is needed: a few updates are measured here, on one device.
    """
    return scaled(plan(recipe, progress=progress, **options), hardware)


def choose(
    recipe: str | Path | Recipe | None,
    data: Any,
    *,
    start: Path | None,
    task: str | None,
    change: Callable[..., Recipe],
    display: Display,
) -> AutoChoice:
    """Return a recipe chosen by the data, to train a new model or to fine-tune the run at `start`.

    `task` is what is to be learned from a language model; `change` returns a recipe, or that of a
    name, with the changes that were asked for.
    """
    if start is not None:
        if recipe == AUTO:
            raise SettingsError("auto chooses a model, --from keeps that of a run: leave one out.")
        named = find_recipe(str(recipe)) if isinstance(recipe, str | Path) else recipe
        wanted, options = _tuned_task(start, named, task)
        with display.waiting("Choosing how to fine-tune ..."):
            found: AutoChoice = wanted(start, named, data, change=change, **options)
        return _shown(found, display, of="from")
    if task is not None:
        raise SettingsError("--task says what to learn from a language model: name it with --from.")
    chosen = change(recipe)
    auto = task_of(chosen.task).auto
    if auto is None:
        known = [name for name in TASKS if task_of(name).auto is not None]
        raise SettingsError(
            f"{AUTO!r} cannot choose for the task {chosen.task!r} (it can for {', '.join(known)}): "
            "name a recipe; `regard recipes` lists them."
        )
    minutes = getattr(getattr(chosen, "training", None), "minutes", None)
    if minutes is None:
        raise SettingsError(f"{AUTO!r} chooses by data and time: give the time, as --minutes 10.")
    with display.waiting("Choosing a recipe ..."):
        found = auto(chosen, data, minutes=minutes)
    return _shown(replace(found, recipe=change(found.recipe)), display, of="auto")


def _shown(found: AutoChoice, display: Display, *, of: str) -> AutoChoice:
    """Show the reasons for a choice now, or with the plan of a dry run."""
    if isinstance(display, DryRunDisplay):
        display.reasons = found.reasons
    else:
        for reason in found.reasons:
            display.note(f"{of}: {reason}")
    return found


# What can be learned from a language model, and the task that a run of it has.
LEARNED = {"continue": "language-model", "answer": "language-model", "classify": "classify-text"}


def _tuned_task(
    folder: Path, recipe: Recipe | None, task: str | None
) -> tuple[Callable[..., AutoChoice], dict[str, str]]:
    """Return what chooses how to fine-tune a run, with options, or say why it cannot be done."""
    before = Run.open(folder).task
    wanted = before if recipe is None else recipe.task
    if task is not None:
        require_known(task, LEARNED, what="task")
        if before != "language-model" or recipe is not None:
            raise SettingsError(
                f"--task {task} says what to learn from a language model without a recipe; the run "
                f"at {folder} is of the task {before!r}."
            )
        wanted = LEARNED[task]
    if before == "classify-text":
        raise SettingsError(
            f"The run at {folder} is a classifier, whose labels are fixed: start from the language "
            "model that it began with, and give all labelled texts."
        )
    fine_tune = task_of(wanted).fine_tune
    if fine_tune is None or before not in (wanted, "language-model"):
        known = [name for name in TASKS if task_of(name).fine_tune is not None]
        raise SettingsError(
            f"The run at {folder} is of the task {before!r}, and a training of the task {wanted!r} "
            f"cannot start from it. What can be fine-tuned: {', '.join(known)}; a language model "
            "also learns to classify texts (--task classify)."
        )
    return fine_tune, {} if task != "answer" else {"learned": task}


# The learning rate of all weights, for a model of this width; wider ones take smaller steps.
# Adapters, which begin at zero, take larger ones.
RATE, RATE_WIDTH, ADAPTER_FACTOR = 1e-4, 256, 10.0
EPOCHS, FEWEST_UPDATES = 5, 100
WARMUP_SHARE, VALIDATIONS, PATIENCE = 0.1, 10, 3


def gentle_training(training: AnySettings, *, width: int, updates_per_epoch: int) -> AnySettings:
    """Return training settings that fine-tune a model of this width.

    A low rate, few epochs and an early stop, so that little is forgotten.
    """
    rank = getattr(training, "adapter_rank", 0)
    rate = RATE * min(1.0, math.sqrt(RATE_WIDTH / width)) * (ADAPTER_FACTOR if rank else 1.0)
    steps = max(FEWEST_UPDATES, EPOCHS * updates_per_epoch)
    every = max(1, steps // VALIDATIONS)
    chosen = {
        "learning_rate": float(f"{rate:.2g}"),
        "schedule": "linear",
        "warmup": max(1, round(WARMUP_SHARE * steps)),
        "steps": steps,
        "validate_every": every,
        "checkpoint_every": every,
        "patience": PATIENCE,
    }
    return training.model_copy(update=chosen)


def gentle_reasons(training: Any) -> tuple[str, str]:
    """Return what fine-tuning settings do, in words: what is trained, and how long."""
    rank, frozen = training.adapter_rank, ", ".join(training.freeze)
    what = f"adapters of rank {rank}" if rank else "all weights"
    what += f" but {frozen}" if frozen else ""
    learned = (
        f"{what} at a learning rate of {training.learning_rate:g}, low so that little is "
        f"forgotten, after {training.warmup} updates of warm-up"
    )
    length = f"at most {training.steps:,} updates"
    if training.patience is not None:
        length += (
            f", fewer if {training.patience} validations in a row (every "
            f"{training.validate_every} updates) are no better; the best one is kept"
        )
    return learned, length
