from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.training.progress import Observers, Progress
from regard.training.update import UpdateResult


@pytest.mark.parametrize(
    ("values", "best", "without"),
    [
        ([], None, 0),
        ([3.0], 3.0, 0),
        ([3.0, 4.0, 5.0], 3.0, 2),
        ([3.0, 4.0, 2.0], 2.0, 0),
        ([3.0, 3.0], 3.0, 1),
        ([float("nan"), 3.0], 3.0, 0),
        ([3.0, float("nan")], 3.0, 1),
    ],
)
def test_lower_is_better(values: list[float], best: float | None, without: int) -> None:
    progress = Progress()
    for value in values:
        progress = progress.validated(value)
    assert (progress.best_value, progress.without_progress) == (best, without)


def test_all_observers_hear_the_same(toy: Any, tmp_path: Path) -> None:
    first, second = toy(tmp_path).diary, toy(tmp_path).diary
    everybody = Observers([first, second])
    everybody.updated(Progress(step=1), UpdateResult(1.0, 5, 0.1), {"padding": 0.0})
    everybody.validated(Progress(step=1), {"loss": 2.0})
    everybody.finished(Progress(step=1), "done")
    assert first == second
    assert first.steps == [1]
    assert first.validations == [(1, {"loss": 2.0})]
    assert first.reasons == ["done"]
