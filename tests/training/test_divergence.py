"""A loss or gradient that is not finite changes no weight; too many of them stop the training."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import NonFiniteError
from regard.training.losses import LossSum
from regard.training.objective import Validation
from regard.training.progress import MetricsLog, Observers, read_metrics


def poisoned(task: Any, *, updates: set[int], kind: str = "loss") -> None:
    """Make the loss or the gradient of these updates infinite or not a number."""
    plain = task.loss_sum
    calls = iter(range(1, 10_000))

    def loss_sum(points: Any) -> LossSum:
        found = plain(points)
        if task.model.training and next(calls) in updates:
            factor = {"loss": math.nan, "infinite loss": math.inf, "gradient": 1.0}[kind]
            objective = found.objective * factor
            if kind == "gradient":  # the root of zero has an infinite slope
                objective = objective + (0.0 * task.model[3].weight).square().sum().sqrt()
            return LossSum(objective, objective.detach())
        return found

    task.loss_sum = loss_sum


@pytest.mark.parametrize("kind", ["loss", "infinite loss", "gradient"])
def test_the_update_is_skipped_counted_and_said(toy: Any, tmp_path: Path, kind: str) -> None:
    task = toy(tmp_path)
    poisoned(task, updates={2}, kind=kind)
    before: list[Any] = []
    updated = task.diary.updated

    def watch(progress: Any, result: Any, facts: Any) -> None:
        before.append((task.weights(), result.skipped, progress.skipped))
        updated(progress, result, facts)

    task.diary.updated = watch
    progress = task.fit(steps=4)
    (first, *_), (second, skipped, count), (third, *_), _ = before
    assert skipped
    assert count == progress.skipped == 1
    assert progress.skipped_in_a_row == 0
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(second[name], third[name]) for name in second)
    (note,) = task.diary.notes
    assert note.startswith("update 2 skipped: loss ")
    assert note.endswith("(1 in a row)")
    assert task.diary.reasons == [
        "all 4 updates done; 1 updates skipped, their gradients were not finite"
    ]


def test_the_moving_average_is_left_alone_too(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    poisoned(task, updates={1, 2})
    task.fit(steps=2, ema=0.5)
    fresh = toy(tmp_path / "other")
    assert all(torch.equal(w, fresh.weights()[name]) for name, w in task.weights().items())


def test_a_skipped_update_is_recorded(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    poisoned(task, updates={2})
    path = tmp_path / "metrics.jsonl"
    task.diary = Observers([MetricsLog(path, every=3)])
    task.fit(steps=3, validate_every=9)
    rows = [row for row in read_metrics(path) if row["kind"] == "skipped"]
    assert [(row["step"], row["loss"], row["skipped"]) for row in rows] == [(2, "nan", 1)]
    assert "NaN" not in path.read_text()


def test_too_many_in_a_row_stop_the_training(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    poisoned(task, updates=set(range(4, 100)))
    with pytest.raises(NonFiniteError) as stopped:
        task.fit(steps=100, checkpoint_every=2, max_skipped=3)
    newest = tmp_path / "checkpoints" / "step-00000002"
    message = str(stopped.value)
    assert message.startswith(
        "Training has diverged: loss nan, gradient norm nan at update 6, the last of 3 updates in "
        f"a row that were skipped. Its batch is in {tmp_path / 'diverged.json'}. The last finite "
        f"one is {newest}; go on with a lower training.learning_rate"
    )
    saved = json.loads((tmp_path / "diverged.json").read_text())
    assert saved["update"] == 6
    assert saved["loss"] == "nan"
    assert len(saved["batches"][0]["inputs"]) == 12
    assert task.diary.steps == [1, 2, 3, 4, 5, 6]
    assert task.store.folders() == [newest]  # those after it have seen the trouble
    again = toy(tmp_path)
    again.fit(steps=5)
    assert again.diary.steps == [3, 4, 5]


def test_a_stop_without_a_checkpoint_says_so(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    poisoned(task, updates=set(range(1, 100)))
    with pytest.raises(NonFiniteError, match="There is no checkpoint; go on with a lower"):
        task.fit(steps=100)
    assert task.diary.steps == list(range(1, 11))  # the default


def test_weights_that_overflow_are_never_kept(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    task.fit(steps=1, checkpoint_every=1)

    def overflow(*_: Any) -> None:
        with torch.no_grad():
            task.model[3].weight.fill_(math.inf)

    task.diary.updated = overflow
    with pytest.raises(NonFiniteError, match=r"diverged by update 2: '3.weight' is not finite"):
        task.fit(steps=9, checkpoint_every=1, validate=lambda: Validation(metrics={}, value=-9.0))
    assert [folder.name for folder in task.store.folders()] == ["step-00000001"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_never_the_best(
    toy: Any, tmp_path: Path, value: float
) -> None:
    task = toy(tmp_path)
    progress = task.fit(steps=2, validate=lambda: Validation(metrics={"loss": value}, value=value))
    assert progress.best_value is None
    assert not (tmp_path / "best").exists()


def test_a_validation_whose_outputs_are_no_numbers_does_not_stop(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)

    def validate() -> Validation:
        raise NonFiniteError("the scores are not numbers.")

    progress = task.fit(steps=2, validate_every=1, validate=validate)
    assert progress.step == 2
    assert task.diary.notes == ["validation failed: the scores are not numbers."] * 2


def test_an_exploding_loss_is_said_once(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    plain, calls = task.loss_sum, iter(range(1, 1000))

    def loss_sum(points: Any) -> LossSum:
        found = plain(points)
        if task.model.training and next(calls) in {*range(4, 23), *range(30, 61)}:
            return LossSum(found.objective, found.nats * 1000)
        return found

    task.loss_sum = loss_sum
    task.fit(steps=22)
    assert task.diary.notes == []  # it has to last
    task.diary.notes.clear()
    task.fit(steps=60)
    (note,) = [line for line in task.diary.notes if line.startswith("update")]
    assert "lower training.learning_rate" in note
