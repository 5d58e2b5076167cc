"""Several processes take the same steps as one, and end when they should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.base.errors import NonFiniteError, RunError
from regard.batching.batch import Batch, Example, collate
from regard.batching.order import BatchPosition
from regard.compute.device import can_fork, current_device
from regard.compute.group import Group, computing_together, local_group, shared_out
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.tasks.translation.objective import batch_loss
from regard.training.distributed import WINDOW, Balance, taking_updates
from regard.training.losses import LossSum
from regard.training.objective import Objective, Optimisation, Validation
from regard.training.update import Sharing

pytestmark = pytest.mark.skipif(
    not can_fork(current_device()), reason="copies of a process need Linux and no GPU"
)
VOCAB = 20
SENTENCES = [
    Example(tuple(range(4, 4 + length)), tuple(range(5, 6 + length // 2)))
    for length in (3, 4, 5, 5, 7)
]


def stepped(
    processes: int, *, dropout: float = 0.0, seed: int = 3, updates: int = 1
) -> tuple[list[float], list[Tensor], Tensor]:
    """Return the losses of some updates, the last gradients, and a number drawn afterwards."""
    torch.manual_seed(1)
    settings = TransformerSettings(
        layers=1, model_dim=8, heads=2, feed_forward=16, dropout=dropout, tie="all"
    )
    model = build_translator(settings, source_vocab=VOCAB, target_vocab=VOCAB).train()
    batch = collate(SENTENCES)
    objective = Objective[Batch](
        loss_sum=partial(batch_loss, model, smoothing=0.1),
        batches_from=lambda epoch, number: repeat((BatchPosition(), batch)),
        validate=lambda: Validation(metrics={}, value=0.0),
    )
    optimisation = Optimisation[Batch](
        optimizer=torch.optim.AdamW(model.parameters(), fused=True),
        learning_rate=lambda step, done: 0.01,
        accumulate=2,
        clip=1e9,
        sharing=Sharing(processes, Batch.split),
    )
    with taking_updates(model, objective, optimisation) as taking:
        torch.manual_seed(seed)
        taking.begin(0, 0)
        losses = [taking.take(step).result.loss for step in range(1, updates + 1)]
    return losses, [p.grad for p in model.parameters() if p.grad is not None], torch.rand(1)


@pytest.mark.parametrize("processes", [2, 3, 7])  # 7: more than sentences
def test_several_processes_compute_the_gradient_of_one(processes: int) -> None:
    losses, wanted, _ = stepped(1, updates=2)
    shared, found, _ = stepped(processes, updates=2)
    assert shared == pytest.approx(losses, rel=1e-5)
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-4)


def test_dropout_of_several_processes_follows_the_seed() -> None:
    one, again, other = (stepped(2, dropout=0.3, seed=seed)[1:] for seed in (3, 3, 4))
    torch.testing.assert_close(one, again, atol=0, rtol=0)
    assert not torch.equal(one[0][0], other[0][0])


def test_one_process_that_computes_all_parts_takes_the_same_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = stepped(2, dropout=0.3, updates=3)
    monkeypatch.setattr(Balance, "alone", property(lambda self: True, lambda self, value: None))
    alone = stepped(2, dropout=0.3, updates=3)
    torch.testing.assert_close(alone[1], shared[1], atol=1e-7, rtol=1e-5)
    assert alone[0] == pytest.approx(shared[0], rel=1e-6)
    assert torch.equal(alone[2], shared[2])


def halves(rows: Any, count: int) -> list[Any]:
    return [replace(rows, inputs=part) for part in rows.inputs.chunk(count)]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_training_goes_on_as_if_it_had_never_stopped(
    toy: Any, tmp_path: Path, frozen: bool
) -> None:
    def trained(folder: Path, *stops: int) -> dict[str, Tensor]:
        for steps in stops:
            task = toy(folder)
            task.model[0].requires_grad_(not frozen)
            task.fit(steps=steps, checkpoint_every=5, sharing=Sharing(2, halves))
        weights: dict[str, Tensor] = task.weights()
        return weights

    torch.testing.assert_close(
        trained(tmp_path / "one", 20), trained(tmp_path / "two", 10, 20), atol=0, rtol=0
    )


def test_the_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    stepped(2)
    assert torch.get_num_threads() == before


def test_the_validation_has_all_threads_and_an_update_one(toy: Any, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    task, seen = toy(tmp_path), []
    plain_loss = task.loss_sum

    def loss_sum(points: Any) -> LossSum:
        seen.append(torch.get_num_threads())
        found: LossSum = plain_loss(points)
        return found

    task.loss_sum = loss_sum
    torch.set_num_threads(3)
    try:
        task.fit(steps=2, validate_every=1, sharing=Sharing(2, halves))
    finally:
        torch.set_num_threads(before)
    assert seen == [1, 3, 1, 3]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_ends_or_stands_still_is_reported(
    toy: Any, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.compute.group.BEAT", 0.1)
    monkeypatch.setattr("regard.compute.group.LOST_AFTER", 1.0)
    task, first = toy(tmp_path), os.getpid()
    plain = task.loss_sum

    def loss_sum(points: Any) -> LossSum:
        if os.getpid() != first:
            os.kill(os.getpid(), number)
        found: LossSum = plain(points)
        return found

    task.loss_sum = loss_sum
    with pytest.raises(RunError, match=r"Of the 2 processes .* --resume"):
        task.fit(steps=3, sharing=Sharing(2, halves))


def test_processes_that_read_other_batches_are_refused(toy: Any, tmp_path: Path) -> None:
    task, first = toy(tmp_path), os.getpid()

    def batches(epoch: int, batch: int) -> Iterator[Any]:
        for place, points in sys.modules[toy.__module__].points_from(epoch, batch):
            yield place, points if os.getpid() == first else replace(points, target_tokens=5)

    objective = Objective[Any](loss_sum=task.loss_sum, batches_from=batches, validate=task.validate)
    optimisation = Optimisation[Any](
        optimizer=task.optimizer, learning_rate=lambda step, done: 0.01, sharing=Sharing(2, halves)
    )
    with (
        pytest.raises(RunError, match="read different batches"),
        taking_updates(task.model, objective, optimisation) as updates,
    ):
        updates.begin(0, 0)
        updates.take(1)


def squares(numbers: Any) -> list[list[int]]:
    if 13 in numbers:
        raise NonFiniteError("an unlucky number")
    return [[number**2, os.getpid()] for number in numbers]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_work_is_shared_out_in_order(count: int) -> None:
    def follow(group: Group) -> None:
        with computing_together(group):
            shared_out(range(count), squares)

    with local_group(2, follow) as group, computing_together(group):
        found = shared_out(range(count), squares)
    assert [square for square, _ in found] == [number**2 for number in range(count)]
    assert len({pid for _, pid in found}) == min(2, count)


def test_an_error_in_shared_work_is_raised_in_all_processes() -> None:
    def follow(group: Group) -> None:
        with computing_together(group), pytest.raises(NonFiniteError):
            shared_out([1, 13], squares)

    with (
        pytest.raises(NonFiniteError, match="unlucky"),
        local_group(2, follow) as group,
        computing_together(group),
    ):
        shared_out([1, 13], squares)


@pytest.mark.parametrize(("single", "alone"), [(0.5, True), (1.5, False)])
def test_one_process_is_kept_where_several_are_slower(single: float, alone: bool) -> None:
    notes: list[str] = []
    balance = Balance(Group(0, 2), notes.append)
    for _ in range(WINDOW):
        assert not balance.alone
        balance.saw(100, seconds=1.0, computing=0.9)
    for _ in range(WINDOW):
        assert balance.alone  # it is tried
        balance.saw(100, seconds=single, computing=0.9)
    assert balance.alone == alone
    assert bool(notes) == alone


def test_several_processes_are_kept_where_they_are_faster() -> None:
    balance = Balance(Group(0, 2), pytest.fail)
    for _ in range(3 * WINDOW):
        balance.saw(100, seconds=0.6, computing=1.0)
        assert not balance.alone


KILLED = """
import multiprocessing, os, signal
from regard.compute.group import local_group
with local_group(3, lambda group: group.hear()):
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_when_the_first_process_is_killed() -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True)
    workers = [int(pid) for pid in killed.stdout.split()]
    assert len(workers) == 2
    until = time.monotonic() + 30
    while any(map(is_alive, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_alive, workers))


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that nobody waits for has ended all the same."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
