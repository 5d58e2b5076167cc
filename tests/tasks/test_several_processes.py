"""Two processes learn what one learns, whatever the task."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.several_processes import RUNS, farthest, learning_of, take

from regard.compute.device import can_fork, current_device

pytestmark = pytest.mark.skipif(
    not can_fork(current_device()), reason="copies of a process need Linux and no GPU"
)
QUICK = ("muon-translator", "language-model", "text-classifier", "forecaster", "node-classifier")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in RUNS],
)
def test_two_processes_learn_what_one_learns(name: str, tmp_path: Path) -> None:
    learning = learning_of(name, tmp_path / "single")
    one, two = (take(learning, processes=n, updates=1, double=False) for n in (1, 2))
    assert farthest(two.gradients, one.gradients, relative=True) < 1e-5
    assert two.losses == pytest.approx(one.losses, abs=1e-4)
    learning = learning_of(name, tmp_path / "double", double=True)
    one, two = (take(learning, processes=n, updates=20, double=True) for n in (1, 2))
    assert farthest(two.weights, one.weights) < 1e-9
    assert two.losses == pytest.approx(one.losses, rel=1e-9)
