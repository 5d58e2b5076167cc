from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.training.checkpoint import read_state
from regard.training.objective import Limits, Validation
from regard.training.progress import Progress


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first | second)


def test_updates_validations_and_the_end_are_told(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    progress = task.fit(steps=5, validate_every=2)
    assert task.diary.steps == [1, 2, 3, 4, 5]
    assert [step for step, _ in task.diary.validations] == [2, 4, 5]
    assert task.diary.reasons == ["all 5 updates done"]
    assert task.diary.facts[0] == {"learning_rate": 0.01, "padding": 0.25}
    assert (progress.step, progress.epoch, progress.batch) == (5, 1, 2)


def test_one_seed_gives_one_result(toy: Any, tmp_path: Path) -> None:
    results = []
    for number, seed in enumerate([1, 1, 2]):
        task = toy(tmp_path / f"{number}", seed=seed)
        task.fit(steps=6)
        results.append(task.weights())
    assert equal(results[0], results[1])
    assert not equal(results[0], results[2])


@pytest.mark.parametrize("stop", [1, 3, 7])
def test_a_resumed_training_ends_as_an_uninterrupted_one(
    toy: Any, tmp_path: Path, stop: int
) -> None:
    whole = toy(tmp_path / "whole")
    whole.fit(steps=10, validate_every=3)
    toy(tmp_path / "parts").fit(steps=stop, validate_every=3)
    rest = toy(tmp_path / "parts", seed=99)  # what it begins with must not matter
    progress = rest.fit(steps=10, validate_every=3)
    assert rest.diary.steps == list(range(stop + 1, 11))
    assert progress.step == 10
    assert equal(whole.weights(), rest.weights())


def test_a_finished_training_is_not_continued(toy: Any, tmp_path: Path) -> None:
    first = toy(tmp_path)
    first.fit(steps=3)
    again = toy(tmp_path, seed=2)
    again.fit(steps=3)
    assert again.diary.steps == []
    assert again.diary.reasons == ["all 3 updates done"]
    assert equal(first.weights(), again.weights())


def test_accumulated_batches_make_one_update(toy: Any, tmp_path: Path) -> None:
    progress = toy(tmp_path).fit(steps=4, accumulate=2)
    assert (progress.step, progress.epoch, progress.batch) == (4, 2, 2)  # 8 batches, 3 an epoch


def test_training_stops_when_nothing_improves(toy: Any, tmp_path: Path) -> None:
    values = itertools.chain([5.0, 3.0], itertools.repeat(4.0))

    def validate() -> Validation:
        value = next(values)
        return Validation(metrics={"loss": value}, value=value)

    task = toy(tmp_path)
    progress = task.fit(
        steps=100, validate_every=2, patience=3, checkpoint_every=1000, validate=validate
    )
    assert (progress.step, progress.best_step, progress.best_value) == (10, 4, 3.0)
    assert task.diary.reasons == ["no progress in 3 validations"]
    assert read_state(tmp_path / "best")["progress"]["step"] == 4
    # The last model is kept too, and a resumed training knows that it had stopped.
    assert [folder.name for folder in task.store.folders()] == ["step-00000010"]
    again = toy(tmp_path)
    again.fit(steps=100, validate_every=2, patience=3, validate=validate)
    assert again.diary.steps == []


def test_training_stops_when_the_minutes_are_over(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0.0, 20.0)  # every look at the clock takes 20 seconds
    # In the loop alone: other threads look at the real clock.
    monkeypatch.setattr("regard.training.loop.time", SimpleNamespace(monotonic=lambda: next(clock)))
    task = toy(tmp_path)
    progress = task.fit(steps=1000, minutes=1.0)
    assert (progress.step, progress.seconds) == (3, 60.0)
    assert task.diary.reasons == ["1 minute is over"]
    assert [step for step, _ in task.diary.validations] == [3]
    assert [folder.name for folder in task.store.folders()] == ["step-00000003"]


@pytest.mark.parametrize(
    ("limits", "progress", "share"),
    [
        (Limits(steps=10), Progress(step=4, seconds=600.0), 0.4),
        (Limits(steps=10, minutes=20.0), Progress(step=4, seconds=600.0), 0.5),
        (Limits(steps=10, minutes=20.0), Progress(step=7, seconds=600.0), 0.7),
        (Limits(steps=10, minutes=1.0), Progress(step=7, seconds=600.0), 1.0),
    ],
)
def test_the_share_done_is_by_steps_or_time(
    limits: Limits, progress: Progress, share: float
) -> None:
    assert limits.done(progress) == pytest.approx(share)


def test_a_training_says_that_other_threads_give_other_digits(toy: Any, tmp_path: Path) -> None:
    toy(tmp_path).fit(steps=2)
    (newest,) = (tmp_path / "checkpoints").iterdir()
    recorded = read_state(newest)["numerics"]
    assert recorded["threads"] == torch.get_num_threads()
    assert (recorded["device"], recorded["processes"]) == ("cpu", 1)
    again = toy(tmp_path)
    torch.set_num_threads(2)
    try:
        again.fit(steps=4)
    finally:
        torch.set_num_threads(1)
    assert again.diary.notes == [
        "resuming at update 2",
        "threads = 2 (before: 1): the weights will differ in their last digits from those of a "
        "training that was not interrupted",
    ]
