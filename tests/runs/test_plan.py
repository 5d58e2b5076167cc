"""The estimator of a training: what it measures, what it concludes, and what it leaves alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.batching.batch import split_rows
from regard.batching.order import BatchPosition
from regard.runs import plan
from regard.training.losses import LossSum
from regard.training.objective import Limits, Objective, Optimisation, Start, Validation
from regard.training.progress import DataFacts, Fact
from regard.training.update import Sharing


@dataclass(frozen=True)
class Rows:
    values: Tensor

    @property
    def target_tokens(self) -> int:
        return len(self.values)

    @property
    def padding_share(self) -> float:
        return 0.0


WIDTH, ROWS = 8, 512


def batches(epoch: int, batch: int) -> Iterator[tuple[BatchPosition, Rows]]:
    while True:
        yield BatchPosition(0, 0), Rows(torch.randn(ROWS, WIDTH))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH, bias=False)
        self.dropout = nn.Dropout(0.5)

    def loss(self, batch: Rows) -> LossSum:
        found = self.dropout(self.layer(batch.values)).tanh().sum()
        return LossSum(found, found.detach())


def start(**changes: Any) -> Start:
    torch.manual_seed(1)
    model = Net()
    objective = Objective[Rows](
        loss_sum=model.loss,
        batches_from=batches,
        validate=lambda: Validation(metrics={}, value=0.0),
        read=lambda: DataFacts(facts=(Fact("rows", 90, "90 rows"),), batches=7),
    )
    optimisation = Optimisation[Rows](
        optimizer=torch.optim.AdamW(model.parameters()), learning_rate=lambda step, done: 0.1
    )
    return replace(Start(model, objective, optimisation, Limits(steps=100)), **changes)


def test_memory_is_that_of_weights_gradients_optimiser_and_what_a_pass_keeps() -> None:
    memory = plan.plan_of(start()).estimate.memory
    assert memory.weights == memory.gradients == 4 * WIDTH * WIDTH
    assert memory.optimiser == 2 * memory.weights + 4  # two moments and the step
    # At least the inputs, which the layer keeps, its outputs and what tanh returned.
    assert memory.activations >= 3 * 4 * ROWS * WIDTH
    assert memory.activations <= 10 * 4 * ROWS * WIDTH
    assert memory.total == sum(
        (memory.weights, memory.gradients, memory.optimiser, memory.activations)
    )


def test_memory_is_the_same_when_it_is_measured_on_a_part_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def parts(batch: Rows, count: int) -> list[Rows]:
        return [Rows(part.values.clone()) for part in split_rows(batch, count)]

    whole = plan.plan_of(start()).estimate.memory
    shared = start()
    shared = replace(shared, optimisation=replace(shared.optimisation, sharing=Sharing(1, parts)))
    assert plan.plan_of(shared).estimate.memory == whole
    monkeypatch.setattr(plan, "MOST_SECONDS", 0.0)
    assert plan.plan_of(shared).estimate.memory.activations == pytest.approx(
        whole.activations, rel=0.02
    )


def test_weights_optimiser_mode_and_random_state_are_left_as_they_are() -> None:
    given = start()
    given.model.eval()
    before = {name: tensor.clone() for name, tensor in given.model.state_dict().items()}
    state = torch.get_rng_state()
    plan.plan_of(given)
    after = given.model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert torch.equal(torch.get_rng_state(), state)
    assert not given.optimisation.optimizer.state
    assert all(parameter.grad is None for parameter in given.model.parameters())
    assert not given.model.training


def test_updates_are_limited_by_number_or_by_minutes() -> None:
    found = plan.plan_of(start()).estimate
    assert (found.updates, found.by_minutes) == (100, False)
    assert math.isclose(found.seconds, 100 * found.seconds_per_update)
    assert found.updates_per_epoch == 7
    assert found.epochs == pytest.approx(100 / 7)
    short = plan.plan_of(start(limits=Limits(steps=10**9, minutes=0.5))).estimate
    assert short.by_minutes
    assert short.seconds == 30
    assert short.updates == round(30 / short.seconds_per_update)
    long = plan.plan_of(start(limits=Limits(steps=2, minutes=60.0))).estimate
    assert (long.updates, long.by_minutes) == (2, False)


def test_batches_per_update_count_once_for_time_and_not_for_activations() -> None:
    given = start()
    one = plan.plan_of(given).estimate
    four = plan.plan_of(
        replace(given, optimisation=replace(given.optimisation, accumulate=4))
    ).estimate
    assert four.updates_per_epoch == 2
    assert four.tokens_per_update == 4 * one.tokens_per_update
    assert four.memory.activations == one.memory.activations


def test_a_slow_update_is_not_measured_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MOST_SECONDS", 0.0)
    made = plan.plan_of(start())
    assert made.estimate.measured_updates == 0
    assert "measured on a part of one" in str(made)


def test_a_plan_is_shown_in_words() -> None:
    found = plan.plan_of(start())
    estimate = replace(
        found.estimate,
        seconds_per_update=0.25,
        seconds=7200.0,
        updates=28_800,
        tokens_per_update=80.0,
    )
    rows = dict(plan.plan_rows(replace(found, estimate=estimate, trainings=3)))
    assert rows["rows"] == "90 rows"
    assert rows["model"] == "64 parameters"
    assert rows["updates"] == "3 x 28,800 of 80 target tokens; 7 an epoch, 4,114 epochs"
    assert rows["time"] == (
        "3 x about 2 hours and the validations (250 ms an update, measured on 3)"
    )
    minutes = replace(estimate, by_minutes=True, seconds=600.0, processes=2, trained_parameters=60)
    rows = dict(plan.plan_rows(replace(found, estimate=minutes, reasons=("few pairs", "short"))))
    assert rows["model"] == "64 parameters, 4 frozen"
    assert rows["time"] == (
        "10 minutes, as asked for (250 ms an update, measured on 3, 2 processes)"
    )
    assert rows["because"] == "few pairs"
    assert "short" in str(replace(found, reasons=("few pairs", "short")))
