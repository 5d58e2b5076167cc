"""Several processes take the same step as one, and end when they should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.base.errors import RunError
from regard.batching.batch import Batch, Example, collate
from regard.compute.device import can_fork, current_device
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.tasks.translation.objective import batch_loss
from regard.training.losses import LossSum
from regard.training.update import Sharing, gradients

pytestmark = pytest.mark.skipif(
    not can_fork(current_device()), reason="workers need Linux and no GPU"
)
VOCAB = 20
SENTENCES = [
    Example(tuple(range(4, 4 + length)), tuple(range(5, 6 + length // 2)))
    for length in (3, 4, 5, 5, 7)
]


def gradient(processes: int, *, dropout: float, seed: int = 3) -> tuple[float, list[Tensor]]:
    """Return the loss and the gradients of one batch, computed by this number of processes."""
    torch.manual_seed(1)
    settings = TransformerSettings(
        layers=1, model_dim=8, heads=2, feed_forward=16, dropout=dropout, tie="all"
    )
    model = build_translator(settings, source_vocab=VOCAB, target_vocab=VOCAB).train()
    parameters = list(model.parameters())
    batch = collate(SENTENCES)
    loss_sum = partial(batch_loss, model, smoothing=0.1)
    with gradients(loss_sum, parameters, Sharing(processes, Batch.split)) as add_gradient:
        torch.manual_seed(seed)
        nats = add_gradient(batch, batch.target_tokens)
        nats += add_gradient(batch, batch.target_tokens)  # is added to what is there
    return nats, [p.grad for p in parameters if p.grad is not None]


@pytest.mark.parametrize("processes", [2, 3, 7])  # 7: more than sentences
def test_several_processes_compute_the_gradient_of_one(processes: int) -> None:
    nats, wanted = gradient(1, dropout=0.0)
    shared, found = gradient(processes, dropout=0.0)
    assert shared == pytest.approx(nats, rel=1e-5)
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-4)


def test_the_dropout_of_workers_follows_the_seed() -> None:
    one, again, other = (gradient(2, dropout=0.3, seed=seed)[1] for seed in (3, 3, 4))
    torch.testing.assert_close(one, again, atol=0, rtol=0)
    assert not torch.equal(one[0], other[0])


@dataclass(frozen=True)
class Rows:
    inputs: Tensor
    target_tokens: int = 4


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
    gradient(2, dropout=0.0)
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


def test_a_worker_that_ends_is_reported() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    first = os.getpid()

    def loss_sum(rows: Rows) -> LossSum:
        if os.getpid() != first:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = (rows.inputs @ weight).sum()
        return LossSum(loss, loss.detach())

    with (
        pytest.raises(RunError, match=r"worker process .* --resume"),
        gradients(loss_sum, [weight], Sharing(2, halves)) as add_gradient,
    ):
        add_gradient(Rows(torch.ones(4, 3)), 4)


KILLED = """
import multiprocessing, os, signal, torch
from regard.training.update import Sharing, gradients
weight = torch.nn.Parameter(torch.ones(3))
with gradients(lambda batch: None, [weight], Sharing(3, list)):
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
