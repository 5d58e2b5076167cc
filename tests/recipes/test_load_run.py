"""One function loads the runs of every task."""

from __future__ import annotations

from importlib import import_module

from regard.recipes.load_run import LOADERS
from regard.settings.tasks import TASKS


def test_every_task_has_a_loader() -> None:
    assert set(LOADERS) == set(TASKS)
    for module, function in LOADERS.values():
        assert callable(getattr(import_module(module), function))
