"""A few updates of every task, by one process and by several, to be compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from tests.upgrades.kept_runs import KEPT, TRANSLATIONS, KeptRun
from torch import Tensor, nn

import regard
from regard.compute import group
from regard.training import distributed
from regard.training.objective import Objective, Optimisation

MUON = KeptRun(
    "transformer-tiny",
    {**KEPT["transformer-translator"].settings, "training.optimizer": "muon"},
    lambda model: None,
    TRANSLATIONS,
)
RUNS = {**KEPT, "muon-translator": MUON}
MODULES = ("translation", "language_modelling", "text_classification", "forecasting",
           "node_classification")  # fmt: skip


@dataclass(frozen=True)
class Learning:
    """What a training of a task is about to learn, and how."""

    model: nn.Module
    objective: Objective[Any]
    optimisation: Optimisation[Any]


class _FoundError(Exception):
    def __init__(self, learning: Learning):
        super().__init__()
        self.learning = learning


def learning_of(name: str, folder: Path, *, double: bool = False) -> Learning:
    """Return what `regard train` is about to do for one of the runs."""

    def stop(model: nn.Module, objective: Any, optimisation: Any, **_: Any) -> None:
        raise _FoundError(Learning(model, objective, replace(optimisation, moving=None)))

    run = RUNS[name]
    modules = [mock.patch(f"regard.tasks.{task}.training.fit", stop) for task in MODULES]
    for one in modules:
        one.start()
    if double:  # also what is neither weight nor buffer
        torch.set_default_dtype(torch.float64)
    try:
        regard.train(run.recipe, data=run.data, set=run.settings, out=folder, progress=False)
    except _FoundError as found:
        return found.learning
    finally:
        torch.set_default_dtype(torch.float32)
        for one in modules:
            one.stop()
    raise RuntimeError(f"{name} has no training")


def doubled(value: Any) -> Any:
    """Return a batch with numbers of 64 bits in place of those of 32."""
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        return replace(value, **{name: doubled(part) for name, part in parts.items()})
    if isinstance(value, tuple):
        return tuple(map(doubled, value))
    return value


@dataclass(frozen=True)
class Taken:
    """What some updates did: the losses, the first gradients, and the weights at the end."""

    losses: list[float]
    gradients: list[Tensor]
    weights: list[Tensor]


def take(learning: Learning, *, processes: int, updates: int, double: bool) -> Taken:
    """Take updates with a number of processes; the learning stays as it is."""
    model, objective = learning.model, learning.objective
    before, kind = deepcopy(model.state_dict()), next(model.parameters()).dtype
    optimizer_before = deepcopy(learning.optimisation.optimizer.state_dict())
    batches_from = objective.batches_from

    def batches(epoch: int, number: int) -> Iterator[tuple[Any, Any]]:
        for place, batch in batches_from(epoch, number):
            yield place, doubled(batch) if double else batch

    def forked(size: int, follow: Any) -> AbstractContextManager[Any]:
        return group.local_group(processes, follow)

    if double:
        model.double()
    model.eval()
    model.train = lambda mode=True: model  # type: ignore[method-assign]  # no dropout
    objective = replace(objective, batches_from=batches)
    gradients: list[Tensor] = []
    losses = []
    try:
        with (
            mock.patch.object(distributed, "local_group", forked),
            distributed.taking_updates(model, objective, learning.optimisation) as taking,
        ):
            taking.begin(0, 0)
            step = learning.optimisation.optimizer.step
            learning.optimisation.optimizer.step = lambda *_: (  # type: ignore[method-assign]
                gradients or gradients.extend(p.grad.clone() for p in taking.parameters
                                              if p.grad is not None), step(),
            )[1]  # fmt: skip
            torch.manual_seed(7)
            losses = [taking.take(number).result.loss for number in range(1, updates + 1)]
        weights = [p.detach().clone() for p in model.parameters()]
    finally:
        del model.train, learning.optimisation.optimizer.step
        model.to(kind)
        model.load_state_dict(before)
        learning.optimisation.optimizer.load_state_dict(optimizer_before)
    return Taken(losses, gradients, weights)


def farthest(found: list[Tensor], wanted: list[Tensor], *, relative: bool = False) -> float:
    """Return the largest difference between tensors, also beside the largest number of all."""
    if len(found) != len(wanted):
        return float("inf")
    size = max(float(one.abs().max()) for one in wanted) if relative else 1.0
    return max(
        float((one - other).abs().max()) / size for one, other in zip(found, wanted, strict=True)
    )
