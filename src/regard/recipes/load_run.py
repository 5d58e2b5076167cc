"""The best model of any run, whatever its task.

A new task adds a line to `LOADERS`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from regard.recipes.run import Run

# Of each task, where the function is that loads its runs; no other task's code is imported.
LOADERS = {
    "translate": ("regard.recipes.loaded", "load"),
    "forecast": ("regard.recipes.forecast", "load_forecaster"),
    "classify-nodes": ("regard.recipes.classify_nodes", "load_node_classifier"),
    "language-model": ("regard.recipes.loaded_language_model", "load_language_model"),
    "classify-text": ("regard.recipes.loaded_text_classifier", "load_text_classifier"),
}


def load_run(folder: str | Path) -> Any:
    """Load the best model of a run; what it can do depends on what it was trained for.

    A translator translates, a language model generates, a classifier classifies, a forecaster
    forecasts: see the classes named Loaded in this room.
    """
    module, function = LOADERS[Run.open(Path(folder)).task]
    return getattr(import_module(module), function)(folder)
