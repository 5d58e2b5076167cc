"""Averages of weights: their arithmetic, and that a stopped training ends with the same ones."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from regard.training.averages import CheckpointAverage, MovingAverage, mean_of, replaced
from regard.training.checkpoint import read_state
from regard.training.objective import Validation


def best_weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "best" / "model.safetensors")


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first | second)


def test_the_mean_is_the_mean() -> None:
    weights = [{"w": torch.tensor([float(n), 3.0])} for n in (1, 2, 6)]
    assert mean_of(weights)["w"].tolist() == [3.0, 3.0]
    assert mean_of(weights)["w"].dtype == torch.float32


def test_a_moving_average_follows_its_formula() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 0.0)
    moving = MovingAverage(model, decay=0.2)
    nn.init.constant_(model.weight, 1.0)
    moving.update(1)  # 1 / 10 is below the decay
    assert moving.weights["weight"].item() == pytest.approx(0.9)
    nn.init.constant_(model.weight, 2.0)
    moving.update(50)
    assert moving.weights["weight"].item() == pytest.approx(0.2 * 0.9 + 0.8 * 2)


def test_replaced_weights_come_back_even_after_an_error() -> None:
    model = nn.Linear(2, 1)
    before = model.weight.detach().clone()
    with (
        pytest.raises(KeyError),
        replaced(model, {"weight": torch.ones(1, 2), "bias": torch.ones(1)}),
    ):
        assert model.weight.tolist() == [[1.0, 1.0]]
        raise KeyError
    assert torch.equal(model.weight, before)


# What is averaged in training, by the name of the case.
AVERAGES: dict[str, dict[str, Any]] = {
    "moving": {"ema": 0.9},
    "last": {"average": CheckpointAverage(3, of="last")},
    "best": {"average": CheckpointAverage(3, of="best")},
}


@pytest.mark.parametrize("case", AVERAGES)
def test_a_resumed_training_ends_with_the_same_average(toy: Any, tmp_path: Path, case: str) -> None:
    options = {"validate_every": 2, "checkpoint_every": 2, **AVERAGES[case]}
    whole = toy(tmp_path / "whole", keep=3)
    whole.fit(steps=12, **options)
    stopped = toy(tmp_path / "parts", keep=3)

    def killed(progress: Any, result: Any, facts: Any) -> None:
        if progress.step == 7:  # after a checkpoint and a validation, and before the next
            raise KeyboardInterrupt

    stopped.diary.updated = killed
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(steps=12, **options)
    rest = toy(tmp_path / "parts", keep=3, seed=99)
    rest.fit(steps=12, **options)
    assert rest.diary.steps[0] == 7
    assert equal(whole.weights(), rest.weights())
    assert equal(best_weights(tmp_path / "whole"), best_weights(tmp_path / "parts"))
    again = toy(tmp_path / "parts", keep=3)  # a finished training is finished again alike
    again.fit(steps=12, **options)
    assert equal(best_weights(tmp_path / "whole"), best_weights(tmp_path / "parts"))


def test_the_moving_average_is_what_is_kept(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    task.fit(steps=4, ema=0.9, validate_every=4)
    average = load_file(task.store.folders()[-1] / "average.safetensors")
    assert equal(best_weights(tmp_path), average)
    assert not equal(average, task.weights())


def test_an_average_begun_later_begins_with_the_weights(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    task.fit(steps=3)
    fresh = toy(tmp_path, seed=5)
    moving = MovingAverage(fresh.model, decay=0.9)
    fresh.store.follow(moving)
    fresh.store.restore(fresh.model, fresh.optimizer)
    assert equal(moving.weights, task.weights())


def judge(values: list[float]) -> Any:
    """Return a validation that finds these values one after the other."""
    found = itertools.chain(values)

    def validate() -> Validation:
        value = next(found)
        return Validation(metrics={"loss": value}, value=value)

    return validate


# Values of four validations and of the average; which checkpoints of "best" remain; is it kept?
JUDGEMENTS: dict[str, tuple[list[float], list[int], bool]] = {
    "better": ([4.0, 1.0, 3.0, 2.0, 0.5], [2, 4], True),
    "equal": ([4.0, 1.0, 3.0, 2.0, 1.0], [2, 4], True),
    "worse": ([4.0, 1.0, 3.0, 2.0, 1.5], [2, 4], False),
    "not a number": ([1.0, float("nan"), 3.0, 2.0, float("nan")], [1, 4], False),
}


@pytest.mark.parametrize("case", JUDGEMENTS)
def test_the_mean_of_the_best_is_kept_if_it_validates_as_well(
    toy: Any, tmp_path: Path, case: str
) -> None:
    values, steps, kept = JUDGEMENTS[case]
    task = toy(tmp_path)
    average = CheckpointAverage(2, of="best")
    progress = task.fit(steps=4, validate_every=1, validate=judge(values), average=average)
    folders = sorted((tmp_path / "candidates").iterdir())
    assert [folder.name for folder in folders] == [f"step-{step:08d}" for step in steps]
    mean = mean_of(load_file(folder / "model.safetensors") for folder in folders)
    assert equal(best_weights(tmp_path), mean) is kept
    assert ("mean_of" in read_state(tmp_path / "best")) is kept
    assert ("the mean of 2 checkpoints" in task.diary.reasons[0]) is kept
    assert progress.best_value == min(values[:-1] + values[-1:] * kept)
    stored = read_state(task.store.folders()[-1])["progress"]["best_value"]
    assert stored == progress.best_value


@pytest.mark.parametrize(
    ("judgement", "kept"), [([2.0, 1.0], True), ([1.0, 1.0], True), ([1.0, 2.0], False)], ids=str
)
def test_a_judge_decides_between_the_best_and_the_mean(
    toy: Any, tmp_path: Path, judgement: list[float], kept: bool
) -> None:
    task = toy(tmp_path)
    task.fit(
        steps=4,
        validate_every=1,
        validate=judge([4.0, 1.0, 3.0, 2.0, 1.5]),
        average=CheckpointAverage(2, of="best"),
        judge=judge(judgement),
    )
    assert ("mean_of" in read_state(tmp_path / "best")) is kept
    assert read_state(tmp_path / "best")["metrics"]["loss"] == (1.5 if kept else 1.0)


def test_too_few_checkpoints_are_not_averaged(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path, keep=5)
    task.fit(steps=4, checkpoint_every=2, average=CheckpointAverage(3))
    assert task.diary.reasons == ["all 4 updates done"]
