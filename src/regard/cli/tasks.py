"""What a command does for each task: a module a task, loaded when it is needed.

A new task adds a module with the functions of `TaskCommands` and one line to `MODULES`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from regard.settings.suggest import require_known

if TYPE_CHECKING:
    from regard.models.inspection import LayerRow
    from regard.settings.schema import Recipe

MODULES = {
    "translate": "regard.cli.translation",
    "forecast": "regard.cli.forecasting",
    "classify-nodes": "regard.cli.node_classification",
    "language-model": "regard.cli.language_modelling",
    "classify-text": "regard.cli.text_classification",
}


@runtime_checkable
class TaskCommands(Protocol):
    """What every task offers to the command line."""

    def train(self, recipe: Recipe, out: Path, *, name: str, resume: bool) -> dict[str, Any]:
        """Train into a folder, showing progress; return the results as plain values."""
        ...

    def summarise_recipe(self, recipe: Recipe) -> list[LayerRow]:
        """Return the layers of the model that a recipe builds."""
        ...

    def summarise_run(self, folder: Path) -> list[LayerRow]:
        """Return the layers of a trained run."""
        ...


def commands_of(task: str) -> TaskCommands:
    """Return the commands of a task."""
    require_known(task, MODULES, what="task")
    return cast(TaskCommands, import_module(MODULES[task]))
