from __future__ import annotations

import itertools
import math

import pytest

from regard.tasks.translation.settings import TrainingSettings
from regard.training.optimisers import SCHEDULES, learning_rate


@pytest.mark.parametrize(
    ("schedule", "step", "done", "rate"),
    [
        ("constant", 1, 0.0, 0.2),
        ("constant", 5, 0.04, 1.0),
        ("constant", 10, 0.09, 2.0),
        ("constant", 99, 0.98, 2.0),
        ("linear", 9, 0.08, 1.8),
        ("linear", 25, 0.25, 1.5),
        ("linear", 100, 1.0, 0.0),
        ("linear", 500, 5.0, 0.0),
        ("cosine", 10, 0.0, 2.0),
        ("cosine", 50, 0.5, 2 * (0.01 + 0.99 / 2)),
        ("cosine", 100, 1.0, 0.02),
        ("inverse-sqrt", 10, 0.1, 2.0),
        ("inverse-sqrt", 40, 0.4, 1.0),
        ("inverse-sqrt", 1000, 1.0, 0.2),
    ],
)
def test_rates(schedule: str, step: int, done: float, rate: float) -> None:
    found = learning_rate(step, done, schedule=schedule, peak=2.0, warmup=10)
    assert found == pytest.approx(rate)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_without_warmup_the_first_rate_is_the_peak(schedule: str) -> None:
    assert learning_rate(1, 0.0, schedule=schedule, peak=2.0, warmup=0) == pytest.approx(2.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_after_the_warmup_the_rate_never_rises(schedule: str) -> None:
    rates = [
        learning_rate(step, step / 200, schedule=schedule, peak=1.0, warmup=20)
        for step in range(20, 220)
    ]
    assert all(a >= b and math.isfinite(b) for a, b in itertools.pairwise(rates))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_can_be_chosen_in_a_recipe(schedule: str) -> None:
    assert TrainingSettings.model_validate({"schedule": schedule}).schedule == schedule
