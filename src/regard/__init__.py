"""Regard: train, run, measure and see attention models.

>>> import regard
>>> model = regard.load("runs/demo/attention")
>>> t = model.translate("cats do not like dogs")
>>> t.text, t.score, t.attention.weights
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.base.errors import RegardError
    from regard.recipes.load_run import load_run as load

__version__ = "0.1.0"
__all__ = ["RegardError", "__version__", "load"]

# Loaded on first use: torch and matplotlib take seconds that `regard --help` should not.
_WHERE = {
    "load": ("regard.recipes.load_run", "load_run"),
    "RegardError": ("regard.base.errors", "RegardError"),
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    module, there = _WHERE[name]
    return getattr(import_module(module), there)
