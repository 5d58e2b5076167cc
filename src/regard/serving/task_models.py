"""Served runs of the tasks other than translation: what they are called, and their loading."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from regard.base.budgets import MEGABYTE
from regard.base.errors import RegardError
from regard.compute.device import computing_on, current_device
from regard.runs.film import film_of
from regard.runs.report import kept_inputs
from regard.runs.run import Run
from regard.settings.recipe import Recipe
from regard.tasks import load, task_of

# What a model of the smallest size takes, and how many times its weights a larger one does: those
# of the reference, those of the fast engine, and what loading needs for a moment.
LEAST_BYTES = 48 * MEGABYTE
TIMES_ITS_WEIGHTS = 3


@dataclass(frozen=True)
class TaskModel:
    """A language model, classifier, forecaster or graph model, in memory or not yet."""

    name: str
    folder: Path
    recipe: Recipe
    examples: tuple[str, ...] = ()
    held: Any = None
    """The loaded model, if it stays in memory."""
    device: torch.device = field(default_factory=current_device)

    @property
    def kept(self) -> bool:
        """Whether it stays in memory."""
        return self.held is not None

    @property
    def translator(self) -> Any:
        """The loaded model of one that stays in memory."""
        return self.held

    @property
    def bytes_needed(self) -> int:
        """The memory that it is expected to take."""
        return bytes_needed_by(self.folder)

    def load(self) -> Any:
        """Return the loaded model."""
        if self.held is not None:
            return self.held
        with computing_on(self.device):
            return load(self.folder)

    def loaded(self) -> TaskModel:
        """Return the model in memory, to stay there."""
        return replace(self, held=self.load())

    def description(self) -> dict[str, Any]:
        """Return what is known without loading the model, as plain values for JSON."""
        settings: Any = getattr(self.recipe, "model", None)
        layers, heads = getattr(settings, "layers", 0), _first(getattr(settings, "heads", 0))
        attention = getattr(settings, "attention", None)
        attends = attention != "none" if attention is not None else heads > 0
        attends = attends and getattr(settings, "layer", "attention") == "attention"
        family = getattr(settings, "family", None) or self.recipe.task
        parts = {"classify-nodes": "graph", "forecast": "time"}
        part = "encoder" if family == "bidirectional" else "decoder"
        return {
            "name": self.name,
            "title": self.recipe.title or self.name,
            "task": self.recipe.task,
            "family": "transformer" if family == "bidirectional" else family,
            "parameters": parameters_in(self.folder),
            "attends": attends,
            "traced": bool(heads) and self.recipe.task in ("language-model", "classify-text"),
            "part": parts.get(self.recipe.task, part),
            "layers": layers,
            "heads": heads,
            "writes": self.recipe.task == "language-model" and family != "bidirectional",
            "film": bool(film_of(self.folder)),
            "examples": list(self.examples),
        }


def stored_task_model(folder: Path, name: str, *, examples: bool) -> TaskModel:
    """Return a run of any task, to be loaded later."""
    run = Run.open(folder)
    recipe = run.recipe(task_of(run.task).schema)
    return TaskModel(name, folder, recipe, _examples(folder, recipe) if examples else ())


def _examples(folder: Path, recipe: Recipe) -> tuple[str, ...]:
    """Return inputs to begin with: those that the run has kept, or what always suits the task."""
    if recipe.task == "forecast" and getattr(getattr(recipe, "data", None), "built_in", False):
        return ("first", "last")
    found = kept_inputs(folder)
    if found:
        return found
    if recipe.task == "classify-nodes":
        return ("0", "1", "2")
    prompt = getattr(getattr(recipe, "decoding", None), "prompt", "")
    return (prompt,) if prompt else ()


def bytes_needed_by(folder: Path) -> int:
    """Return the memory that a run is expected to take when it is loaded."""
    files = weight_files(folder)
    return LEAST_BYTES + TIMES_ITS_WEIGHTS * sum(file.stat().st_size for file in files)


def weight_files(folder: Path) -> list[Path]:
    """Return the files of the weights that a run is served with; none if it has none yet."""
    try:
        return sorted(Run(folder).weights().glob("model*.safetensors"))
    except RegardError:
        return []


def parameters_in(folder: Path) -> int | None:
    """Return the number of parameters by the heads of the files; None if these are damaged."""
    count = 0
    try:
        for path in weight_files(folder):
            with safe_open(path, "pt") as file:
                shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
            count += sum(math.prod(shape) for shape in shapes)
    except (OSError, SafetensorError):
        return None
    return count or None


def _first(value: Any) -> int:
    """Return a number, or the first of several."""
    return int(value[0]) if isinstance(value, tuple | list) and value else int(value or 0)
