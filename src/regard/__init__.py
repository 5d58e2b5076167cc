"""Regard: train, run, measure and see attention models.

>>> import regard
>>> trained = regard.train("seq2seq-attention", data={"train": pairs}, out="runs/mine")
>>> model = regard.load("runs/mine")
>>> t = model.translate("cats do not like dogs")
>>> t.text, t.score, t.attention.weights

Whatever a command does, a function of the same name does with the same code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.base.errors import DataError, RegardError, RunError, SettingsError
    from regard.tasks import find_recipe, load, train

__version__ = "0.1.0"
__all__ = [
    "DataError",
    "RegardError",
    "RunError",
    "SettingsError",
    "__version__",
    "find_recipe",
    "load",
    "train",
]

# Loaded on first use: torch and matplotlib take seconds that `regard --help` should not.
_WHERE = {
    "train": "regard.tasks",
    "load": "regard.tasks",
    "find_recipe": "regard.tasks",
    "RegardError": "regard.base.errors",
    "DataError": "regard.base.errors",
    "RunError": "regard.base.errors",
    "SettingsError": "regard.base.errors",
}
__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
