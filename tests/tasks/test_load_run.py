"""One function loads the runs of every task."""

from __future__ import annotations

import pytest

from regard.tasks import TASKS, task_of


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_a_loader(name: str) -> None:
    task = task_of(name)
    assert callable(task.load)
    assert "map" in task.views
