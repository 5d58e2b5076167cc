"""A problem so small that a training takes milliseconds: a line through points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.batching.order import BatchPosition
from regard.training.averages import CheckpointAverage, MovingAverage
from regard.training.checkpoint import CheckpointStore
from regard.training.loop import fit
from regard.training.losses import LossSum
from regard.training.objective import Limits, Objective, Optimisation, Validation
from regard.training.progress import Progress
from regard.training.update import Sharing, UpdateResult


@dataclass(frozen=True)
class Points:
    inputs: Tensor
    target_tokens: int = 4
    padding_share: float = 0.25


def points_from(epoch: int, batch: int) -> Iterator[tuple[BatchPosition, Points]]:
    """Yield batches without end, three an epoch, each a function of its place alone."""
    while True:
        generator = torch.Generator().manual_seed(1000 * epoch + batch)
        inputs = torch.randn(4, 3, generator=generator)
        epoch, batch = (epoch + 1, 0) if batch == 2 else (epoch, batch + 1)
        yield BatchPosition(epoch, batch), Points(inputs)


@dataclass
class Diary:
    """An observer that writes down what it hears."""

    steps: list[int] = field(default_factory=list)
    facts: list[Mapping[str, float]] = field(default_factory=list)
    validations: list[tuple[int, Mapping[str, float]]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def updated(self, progress: Progress, result: UpdateResult, facts: Mapping[str, float]) -> None:
        self.steps.append(progress.step)
        self.facts.append(facts)

    def validated(self, progress: Progress, metrics: Mapping[str, float]) -> None:
        self.validations.append((progress.step, metrics))

    def finished(self, progress: Progress, reason: str) -> None:
        self.reasons.append(reason)

    def noted(self, line: str) -> None:
        self.notes.append(line)


class Toy:
    """A model with dropout, so that the random state matters, and what it takes to train it."""

    def __init__(self, folder: Path, *, keep: int = 2, seed: int = 1):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Dropout(0.3), nn.Linear(5, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=True)
        self.store = CheckpointStore(folder, keep=keep, evidence={"data": "points"})
        self.diary = Diary()

    def loss_sum(self, points: Points) -> LossSum:
        wanted = points.inputs.sum(dim=1, keepdim=True)
        squares = (self.model(points.inputs) - wanted).square().sum()
        return LossSum(squares, squares.detach())

    def validate(self) -> Validation:
        value = float(self.loss_sum(next(points_from(99, 0))[1]).nats)
        return Validation(metrics={"loss": value}, value=value)

    def fit(
        self,
        *,
        validate: Callable[[], Validation] | None = None,
        accumulate: int = 1,
        ema: float = 0.0,
        average: CheckpointAverage | None = None,
        judge: Callable[[], Validation] | None = None,
        sharing: Sharing[Points] | None = None,
        **limits: Any,
    ) -> Progress:
        objective = Objective(
            loss_sum=self.loss_sum,
            batches_from=points_from,
            validate=validate or self.validate,
            final_validate=judge,
        )
        optimisation = Optimisation(
            optimizer=self.optimizer,
            learning_rate=lambda step, done: 0.01,
            accumulate=accumulate,
            moving=MovingAverage(self.model, decay=ema) if ema else None,
            average=average,
            sharing=sharing,
        )
        return fit(
            self.model,
            objective,
            optimisation,
            limits=Limits(**limits),
            store=self.store,
            observer=self.diary,
        )

    def weights(self) -> dict[str, Tensor]:
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}


@pytest.fixture
def toy() -> type[Toy]:
    return Toy
