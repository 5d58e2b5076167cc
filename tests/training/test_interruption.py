"""A signal stops a training after its running update, with a checkpoint; nothing is lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.base.errors import Interrupted
from regard.training.averages import CheckpointAverage
from regard.training.objective import Validation
from regard.training.progress import Progress, StopSignals

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def usual_handlers() -> Any:
    """Let signals do what they do in a program that a user starts, whoever starts the tests."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def same(first: Any, second: Any) -> bool:
    return all(torch.equal(w, second.weights()[name]) for name, w in first.weights().items())


def signalling(task: Any, number: int, *, update: int) -> None:
    """Send a signal in the middle of the update of this number."""
    plain, calls = task.loss_sum, iter(range(1, 1000))

    def loss_sum(points: Any) -> Any:
        if task.model.training and next(calls) == update:
            os.kill(os.getpid(), number)
        return plain(points)

    task.loss_sum = loss_sum


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("update", [1, 2, 3, 6])
def test_the_running_update_is_finished_and_kept(
    toy: Any, tmp_path: Path, number: int, update: int
) -> None:
    limits = {"steps": 7, "validate_every": 3, "checkpoint_every": 4}
    straight = toy(tmp_path / "straight")
    straight.fit(**limits)
    task = toy(tmp_path / "run")
    signalling(task, number, update=update)
    with pytest.raises(Interrupted) as stopped:
        task.fit(**limits)
    assert stopped.value.step == update
    assert stopped.value.exit_code == 128 + number
    assert names(tmp_path / "run")[-1] == f"step-{update:08d}-extra"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    again = toy(tmp_path / "run", seed=5)
    again.fit(**limits)
    assert again.diary.notes == [f"resuming at update {update}"]
    assert again.diary.steps[0] == update + 1
    assert same(straight, again)
    assert names(tmp_path / "run") == names(tmp_path / "straight")
    validated = task.diary.validations + again.diary.validations
    assert validated == straight.diary.validations  # none is left out, none is made twice


def test_a_checkpoint_that_is_due_anyway_is_a_regular_one(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    signalling(task, signal.SIGINT, update=4)
    with pytest.raises(Interrupted):
        task.fit(steps=9, validate_every=9, checkpoint_every=4)
    assert names(tmp_path) == ["step-00000004"]


def test_a_validation_is_cut_off_and_made_again(toy: Any, tmp_path: Path) -> None:
    limits = {"steps": 6, "validate_every": 2, "checkpoint_every": 2, "patience": 5}
    straight = toy(tmp_path / "straight")
    straight.fit(**limits)
    task = toy(tmp_path / "run")
    validate = task.validate

    def stopping() -> Validation:
        if len(task.diary.steps) == 4:
            torch.rand(3)  # a validation may draw
            os.kill(os.getpid(), signal.SIGTERM)
            raise AssertionError("the signal comes first")
        return validate()

    with pytest.raises(Interrupted) as stopped:
        task.fit(validate=stopping, **limits)
    assert stopped.value.step == 4
    assert task.diary.validations[-1][0] == 2
    again = toy(tmp_path / "run")
    progress = again.fit(**limits)
    assert [step for step, _ in again.diary.validations] == [4, 6]
    assert same(straight, again)
    assert not progress.validation_due
    assert names(tmp_path / "run") == names(tmp_path / "straight")


def test_a_second_signal_ends_at_once(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    plain = task.loss_sum

    def loss_sum(points: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the signal comes first")

    task.loss_sum = loss_sum
    with pytest.raises(Interrupted) as stopped:
        task.fit(steps=3)
    assert stopped.value.step is None
    assert not (tmp_path / "checkpoints").exists()
    assert task.diary.steps == []
    task.loss_sum = plain


def test_what_a_long_update_delays_is_said(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.training.progress.SECONDS_TO_NOTICE", 0.0)
    task = toy(tmp_path)
    plain, said = task.loss_sum, threading.Event()
    noted = task.diary.noted

    def noting(line: str) -> None:
        noted(line)
        said.set()

    def loss_sum(points: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        assert said.wait(30)
        return plain(points)

    task.loss_sum, task.diary.noted = loss_sum, noting
    with pytest.raises(Interrupted):
        task.fit(steps=3)
    assert task.diary.notes == [
        "stopping after this update; Ctrl-C again ends at once, without a checkpoint"
    ]


def test_checkpoints_of_a_stop_are_never_averaged(toy: Any, tmp_path: Path) -> None:
    limits = {"steps": 6, "checkpoint_every": 2, "average": CheckpointAverage(3)}
    straight = toy(tmp_path / "straight", keep=3)
    straight.fit(**limits)
    for update in (3, 1, 1):  # counted from the start of each attempt
        task = toy(tmp_path / "run", keep=3)
        signalling(task, signal.SIGTERM, update=update)
        with pytest.raises(Interrupted):
            task.fit(**limits)
    toy(tmp_path / "run", keep=3).fit(**limits)
    best = [
        (tmp_path / name / "best" / "model.safetensors").read_bytes()
        for name in ("straight", "run")
    ]
    assert best[0] == best[1]


def test_in_another_thread_signals_stay_as_they_are() -> None:
    found: list[Any] = []

    def look() -> None:
        with StopSignals():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as under nohup
    with StopSignals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.received is None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let each update take this many seconds."""

    def set_pace(seconds: float) -> None:
        times = iter(range(10_000))
        # The loop's clock alone: other threads of this process look at theirs at any moment.
        fake = SimpleNamespace(monotonic=lambda: seconds * next(times))
        monkeypatch.setattr("regard.training.loop.time", fake)

    return set_pace


def test_checkpoints_are_also_written_by_time(
    toy: Any, tmp_path: Path, clock: Callable[[float], None]
) -> None:
    clock(60.0)
    task = toy(tmp_path)
    saved: list[tuple[int, bool]] = []
    save = task.store.save

    def saving(model: Any, optimizer: Any, progress: Progress, *, extra: bool = False) -> None:
        saved.append((progress.step, extra))
        save(model, optimizer, progress, extra=extra)

    task.store.save = saving
    task.fit(steps=9, checkpoint_every=8, checkpoint_minutes=3.0)
    assert saved == [(3, True), (6, True), (8, False), (9, False)]
    assert names(tmp_path) == ["step-00000008", "step-00000009"]


def test_no_time_is_counted_twice(toy: Any, tmp_path: Path, clock: Callable[[float], None]) -> None:
    clock(30.0)
    task = toy(tmp_path)
    signalling(task, signal.SIGINT, update=3)
    with pytest.raises(Interrupted):
        task.fit(steps=100, minutes=4.0)
    clock(30.0)  # a new process begins at zero
    progress = toy(tmp_path).fit(steps=100, minutes=4.0)
    assert (progress.step, progress.seconds) == (8, 240.0)
