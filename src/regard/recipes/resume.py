"""Beginning and resuming a training: what the trainings of all tasks share."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from regard.base.errors import RunError, SettingsError
from regard.recipes.run import RECIPE, Run
from regard.settings.schema import Recipe
from regard.training.checkpoint import CheckpointStore, read_state
from regard.training.loop import Limits
from regard.training.progress import MetricsLog, TensorBoardLog

# A resumed training may get other limits and be decoded otherwise; the rest is what is trained.
MAY_CHANGE = {"title", "training", "decoding"}
PACKAGES = ("regard", "torch", "sentencepiece", "safetensors")


@runtime_checkable
class LimitSettings(Protocol):
    """The part of a task's training settings that says when to stop, validate and save."""

    @property
    def steps(self) -> int: ...  # noqa: D102

    @property
    def minutes(self) -> float | None: ...  # noqa: D102

    @property
    def patience(self) -> int | None: ...  # noqa: D102

    @property
    def validate_every(self) -> int: ...  # noqa: D102

    @property
    def checkpoint_every(self) -> int: ...  # noqa: D102


def limits_of(settings: LimitSettings) -> Limits:
    """Return when to stop, validate and save."""
    return Limits(
        steps=settings.steps,
        minutes=settings.minutes,
        patience=settings.patience,
        validate_every=settings.validate_every,
        checkpoint_every=settings.checkpoint_every,
    )


def open_run(folder: Path, recipe: Recipe, *, resume: bool) -> Run:
    """Return a new run, or with `resume` the one that is there, if it trains the same thing."""
    if not resume:
        return Run.create(folder, recipe)
    run = Run.open(folder)
    before = run.recipe(type(recipe))
    for part in type(recipe).model_fields.keys() - MAY_CHANGE:
        if getattr(before, part) != getattr(recipe, part):
            raise SettingsError(
                f"The settings under {part!r} differ from those of the run at {folder}: "
                "a resumed training keeps them. Train into another folder to change them."
            )
    was, wanted = (_optimizer(one) for one in (before, recipe))
    if was != wanted:
        raise SettingsError(
            f"The run at {folder} has training.optimizer = {was!r}, whose memory is of no use to "
            f"{wanted!r}. Resume it with --set training.optimizer={was}."
        )
    run.rewrite(recipe)
    return run


def _optimizer(recipe: Recipe) -> str | None:
    """Return the optimiser that a recipe names, if its task has a choice of them."""
    name: str | None = getattr(getattr(recipe, "training", None), "optimizer", None)
    return name


def finish_or_start(folder: Path, recipe: Recipe) -> Run:
    """Return the run of this recipe in the folder, new if there is none."""
    return open_run(folder, recipe, resume=(folder / RECIPE).exists())


def evidence_of(fingerprint: str) -> dict[str, Any]:
    """Return what a checkpoint records of how it was made: versions, and which data."""
    versions = {"python": sys.version.split()[0]} | {name: version(name) for name in PACKAGES}
    return {"versions": versions, "data": fingerprint}


def open_store(run: Run, *, keep: int, fingerprint: str) -> CheckpointStore:
    """Return the run's checkpoints, refusing to go on with other data than they were made of."""
    store = CheckpointStore(run.folder, keep=keep, evidence=evidence_of(fingerprint))
    for folder in store.folders()[-1:]:
        if read_state(folder).get("data") != fingerprint:
            raise RunError(
                f"The data has changed since the checkpoint {folder}: it cannot be resumed "
                "exactly. Restore the data, or train into another folder."
            )
    return store


def open_records(run: Run, store: CheckpointStore, *, tensorboard: bool = False) -> list[Any]:
    """Return the files that a training writes its course to, cut back to the newest checkpoint."""
    newest = store.folders()[-1:]
    step = int(read_state(newest[0])["progress"]["step"]) if newest else 0
    records: list[Any] = [MetricsLog(run.metrics, resume_step=step)]
    if tensorboard:
        records.append(TensorBoardLog(run.folder / "tensorboard"))
    return records
