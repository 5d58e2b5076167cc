from __future__ import annotations

import pytest

from regard.tasks.node_classification.training import EarlyStopping

# loss, accuracy, whether there is hope, whether it is the best model so far
COURSE = [
    (1.0, 0.5, True, True),
    (0.9, 0.4, True, False),
    (1.1, 0.6, True, False),
    (1.0, 0.5, False, False),
    (0.8, 0.6, True, True),  # as accurate as the best counts
    (0.9, 0.5, False, False),
]


def test_by_both_either_gives_hope_but_only_both_are_best() -> None:
    stopping, last = EarlyStopping("both"), float("inf")
    for loss, accuracy, hope, best in COURSE:
        value = stopping.value(loss, accuracy)
        assert (value < last, stopping.chosen) == (hope, best)
        last = value


def test_a_resumed_judge_goes_on_as_before() -> None:
    rows = [{"loss": loss, "accuracy": accuracy} for loss, accuracy, _, _ in COURSE]
    straight = EarlyStopping("both")
    values = [straight.value(**row) for row in rows]
    resumed = EarlyStopping("both", earlier=rows[:3])
    assert [resumed.value(**row) for row in rows[3:]] == values[3:]


@pytest.mark.parametrize(("select", "value"), [("loss", 0.7), ("accuracy", -0.4)])
def test_one_figure_may_be_enough(select: str, value: float) -> None:
    stopping = EarlyStopping(select)
    assert stopping.value(0.7, 0.4) == value
    assert stopping.chosen
