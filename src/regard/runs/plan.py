"""What a training will take, before it starts: the one estimator of memory and time.

The estimate is measured: a few real updates of the real model on real batches, within seconds,
after which weights, optimiser and random state are as they were. So it covers every model and
setting, and a training that was planned is the same, to the bit, as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from statistics import fmean, median_low
from typing import Any
from weakref import finalize

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from regard.compute.group import Group, current_group
from regard.training.distributed import Updates, taking_updates
from regard.training.losses import ROWS
from regard.training.objective import Limits, Objective, Optimisation, Start, in_minutes
from regard.training.progress import DataFacts, Fact
from regard.training.update import AddGradient, add_gradient, update

# The measurement makes this many updates, fewer if they would take longer than these seconds.
MEASURED_UPDATES = 3
MOST_SECONDS = 6.0
# Before them comes one of a part of a batch, which says whether there is time for whole ones.
PARTS = 8


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes that a training holds besides the program and its data."""

    weights: int
    gradients: int
    optimiser: int
    activations: int

    @property
    def total(self) -> int:
        """All of them together, as at the end of a forward pass."""
        return self.weights + self.gradients + self.optimiser + self.activations


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The size of a training in parameters, updates, memory and time."""

    parameters: int
    trained_parameters: int
    processes: int
    memory: MemoryEstimate
    tokens_per_update: float
    """Mean number of target tokens (or values, labels, nodes) of the measured batches."""
    seconds_per_update: float
    measured_updates: int
    """How many whole updates were timed; 0: a part of one, as a whole one would take too long."""
    updates_per_epoch: int | None
    updates: int
    """How many will be made, by the limits of the recipe; early stopping may end them before."""
    seconds: float
    """How long they take; validations come on top, unless minutes are the limit."""
    by_minutes: bool
    """Whether the limit in minutes ends the training, before the one in updates does."""

    @property
    def epochs(self) -> float | None:
        """How often all training data is seen."""
        return self.updates / self.updates_per_epoch if self.updates_per_epoch else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        memory = asdict(self.memory) | {"total": self.memory.total}
        return asdict(self) | {"memory": memory, "epochs": self.epochs}


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """What was read, what will be trained on it, and what that takes."""

    facts: tuple[Fact, ...]
    """What is known of data and vocabulary, as the task describes it."""
    estimate: Estimate
    unit: str = "target tokens"
    """What the size of a batch is counted in."""
    trainings: int = 1
    """How many such trainings there are, one per seed."""
    title: str = ""
    recipe: Any = None
    """The recipe that would be trained, where the plan was asked for."""
    reasons: tuple[str, ...] = ()
    """Why the settings are as they are, where they were chosen by the data."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "title": self.title,
            **{fact.name: fact.value for fact in self.facts},
            **self.estimate.to_dict(),
            "trainings": self.trainings,
            "reasons": list(self.reasons),
        }

    def __str__(self) -> str:
        return "\n".join(f"{name:<11} {text}" for name, text in plan_rows(self))

    def _repr_html_(self) -> str:
        from regard.pictures.svg import notebook_lines

        return notebook_lines(*plan_rows(self))


class PlanMade(Exception):  # noqa: N818  (not an error: the way out of a dry run)
    """Ends a dry run right before the training starts; `plan` is what was asked for."""

    def __init__(self, plan: TrainingPlan):
        super().__init__("the plan is made")
        self.plan = plan


def plan_of(start: Start) -> TrainingPlan:
    """Return the plan of a training that is about to start, which it leaves as it is."""
    found = start.objective.read
    read = DataFacts(facts=()) if found is None else found()
    return TrainingPlan(
        facts=read.facts,
        estimate=estimate_training(
            start.model,
            start.objective,
            start.optimisation,
            limits=start.limits,
            batches=read.batches,
        ),
        unit=read.unit,
        trainings=read.trainings,
    )


def estimate_training(
    model: nn.Module,
    objective: Objective[Any],
    optimisation: Optimisation[Any],
    *,
    limits: Limits,
    batches: int | None = None,
) -> Estimate:
    """Measure a few updates and return what the whole training takes.

    `batches` is the number of batches of an epoch, if that is known.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    processes = 1 if optimisation.sharing is None else optimisation.sharing.processes
    with _left_as_it_is(model, optimisation.optimizer):
        measured = _measure(model, objective, replace(optimisation, moving=None), parameters)
    weights = sum(map(_bytes, [*model.parameters(), *model.buffers()]))
    seconds = measured.seconds * limits.steps
    by_minutes = limits.minutes is not None and 60 * limits.minutes < seconds
    if limits.minutes is not None and by_minutes:
        seconds = 60 * limits.minutes
    return Estimate(
        parameters=sum(p.numel() for p in model.parameters()),
        trained_parameters=sum(p.numel() for p in parameters),
        processes=processes,
        memory=MemoryEstimate(
            weights=processes * weights,
            gradients=processes * sum(map(_bytes, parameters)),
            optimiser=processes * measured.optimiser,
            activations=measured.activations,
        ),
        tokens_per_update=measured.tokens,
        seconds_per_update=measured.seconds,
        measured_updates=measured.updates,
        updates_per_epoch=batches and math.ceil(batches / optimisation.accumulate),
        updates=max(1, round(seconds / measured.seconds)) if by_minutes else limits.steps,
        seconds=seconds,
        by_minutes=by_minutes,
    )


@dataclass(frozen=True)
class _Measured:
    """Of one update: its seconds and target tokens; bytes of optimiser and activations."""

    seconds: float
    tokens: float
    updates: int
    optimiser: int
    activations: int


def _measure(
    model: nn.Module,
    objective: Objective[Any],
    optimisation: Optimisation[Any],
    parameters: Sequence[nn.Parameter],
) -> _Measured:
    """Make an update of a part of a batch and, if there is time, some whole ones."""
    step = partial(
        update, parameters=parameters, optimizer=optimisation.optimizer, clip=optimisation.clip
    )
    batches = objective.batches_from(0, 0)
    first = [batch for _, batch in islice(batches, optimisation.accumulate)]
    tokens = float(sum(batch.target_tokens for batch in first))
    part = first[0]
    if optimisation.sharing is not None:
        part = optimisation.sharing.split(part, PARTS)[0]
    alone: AddGradient[Any] = partial(add_gradient, objective.loss_sum)
    began = time.perf_counter()
    step([part], add_gradient=alone)
    found = _Measured(
        seconds=(time.perf_counter() - began) * tokens / part.target_tokens,
        tokens=tokens,
        updates=0,
        optimiser=_state_bytes(optimisation.optimizer),
        activations=0,
    )
    sharing = optimisation.sharing
    count = 1 if sharing is None else sharing.processes
    own = first[0] if sharing is None or count == 1 else sharing.split(first[0], count)[0]
    activations = partial(_activations, alone, parameters)
    # What the loss holds grows with few tokens only, so no line leads on from there.
    few = part.target_tokens < 2 * ROWS and found.seconds < 10 * MOST_SECONDS
    if found.seconds > MOST_SECONDS and not few:
        parts = [part] if sharing is None else [sharing.split(part, 2)[0], part]
        return replace(found, activations=_extended(activations, parts, to=first[0]))
    found = replace(found, activations=count * activations(own))
    if few and found.seconds > MOST_SECONDS:
        return found
    seconds, counted = list[float](), [tokens]
    single = nullcontext(Updates(model, objective, optimisation, Group()))  # others are not ready
    shared = taking_updates(model, objective, optimisation)
    with single if current_group().size > 1 else shared as updates:
        updates.begin(0, 0)
        if updates.group.size > 1:
            updates.take(1)  # warms up the other processes
        while len(seconds) < MEASURED_UPDATES and sum(seconds) < MOST_SECONDS / 2:
            began = time.perf_counter()
            taken = updates.take(1)
            seconds.append(time.perf_counter() - began)
            counted.append(taken.result.tokens)
    return replace(
        found,
        seconds=median_low(seconds),  # one that another program held up does not count
        tokens=fmean(counted),
        updates=len(seconds),
    )


def _activations(alone: AddGradient[Any], parameters: Sequence[nn.Parameter], batch: Any) -> int:
    """Return the most bytes that forward and backward pass hold at once, without gradients."""
    for parameter in parameters:
        parameter.grad = None
    live = _LiveTensors(parameters)
    with live:
        alone(batch, batch.target_tokens)
    gradients = sum(_bytes(p.grad) for p in parameters if p.grad is not None)
    return max(0, live.peak - gradients)


def _extended(activations: Callable[[Any], int], parts: Sequence[Any], *, to: Any) -> int:
    """Return the activations of a batch by those of small parts of it, on a straight line."""
    counts = [float(part.target_tokens) for part in parts]
    found = [activations(part) for part in parts]
    if len(parts) == 1 or counts[0] == counts[1]:
        return round(found[-1] * float(to.target_tokens) / counts[-1])
    slope = (found[1] - found[0]) / (counts[1] - counts[0])
    return round(found[1] + slope * (float(to.target_tokens) - counts[1]))


@contextmanager
def _left_as_it_is(model: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Restore weights, optimiser, mode and random state afterwards.

    A model that is to be compiled is measured as it is: compiling takes longer than measuring.
    """
    tensors = [*model.parameters(), *model.buffers()]
    before = [tensor.detach().clone() for tensor in tensors]
    training, compiled = model.training, model._compiled_call_impl
    model.train()
    model._compiled_call_impl = None
    try:
        with torch.random.fork_rng():
            yield
    finally:
        with torch.no_grad():
            for tensor, value in zip(tensors, before, strict=True):
                tensor.copy_(value)
        optimizer.zero_grad(set_to_none=True)
        optimizer.state.clear()
        model.train(training)
        model._compiled_call_impl = compiled


class _LiveTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors that operations make or read, while they live.

    `known` are there anyway and not counted. It is not the system's measure: what an allocator
    keeps for later is left out, so the figure is the same everywhere.
    """

    def __init__(self, known: Iterable[Tensor]):
        super().__init__()  # type: ignore[no-untyped-call]
        self._seen = {tensor.untyped_storage()._cdata for tensor in known}
        self._live = 0
        self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and count its tensors."""
        found = func(*args, **(kwargs or {}))
        for tensor in tree_leaves((args, kwargs, found)):
            if isinstance(tensor, Tensor):
                self._count(tensor.untyped_storage())
        return found

    def _count(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata in self._seen:
            return
        size = storage.nbytes()
        self._seen.add(storage._cdata)
        self._live += size
        self.peak = max(self.peak, self._live)
        finalize(storage, self._freed, storage._cdata, size)

    def _freed(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self._live -= size


def _state_bytes(optimizer: torch.optim.Optimizer) -> int:
    kept = (value for memory in optimizer.state.values() for value in memory.values())
    return sum(_bytes(value) for value in kept if isinstance(value, Tensor))


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def plan_rows(plan: TrainingPlan) -> list[tuple[str, str]]:
    """Return what a person wants to know of a plan, as rows of a name and a text."""
    found, often = plan.estimate, f"{plan.trainings} x " if plan.trainings > 1 else ""
    memory = found.memory
    parts = ", ".join(
        f"{name} {megabytes(getattr(memory, name))}"
        for name in ("weights", "gradients", "optimiser", "activations")
    )
    frozen = found.parameters - found.trained_parameters
    return [
        *((fact.name.replace("_", " "), fact.text) for fact in plan.facts),
        ("model", f"{found.parameters:,} parameters" + (f", {frozen:,} frozen" * bool(frozen))),
        ("updates", often + _updates_text(found, unit=plan.unit)),
        ("memory", f"about {megabytes(memory.total)} MB of tensors ({parts})"),
        ("time", often + _time_text(found)),
        *(("" if number else "because", why) for number, why in enumerate(plan.reasons)),
    ]


def _updates_text(found: Estimate, *, unit: str) -> str:
    epochs = found.epochs
    shown = f"{found.updates:,}" if not found.by_minutes else f"about {found.updates:,}"
    shown += f" of {found.tokens_per_update:,.0f} {unit}"
    if found.updates_per_epoch is None or epochs is None:
        return shown
    return f"{shown}; {found.updates_per_epoch:,} an epoch, {_two_digits(epochs)} epochs"


def _time_text(found: Estimate) -> str:
    each = f"{seconds_text(found.seconds_per_update)} an update, measured on "
    each += f"{found.measured_updates}" if found.measured_updates else "a part of one"
    shared = f", {found.processes} processes" if found.processes > 1 else ""
    if found.by_minutes:
        return f"{in_minutes(found.seconds / 60)}, as asked for ({each}{shared})"
    return f"about {seconds_text(found.seconds)} and the validations ({each}{shared})"


def seconds_text(seconds: float) -> str:
    """Return a duration in the unit that suits it."""
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{_two_digits(seconds / size)} {unit}"
    return f"{_two_digits(seconds)} s" if seconds >= 1 else f"{_two_digits(1000 * seconds)} ms"


def _two_digits(number: float) -> str:
    """Return a number with at least two digits that count: 0.53, 5.3, 53, 530."""
    return f"{number:,.0f}" if number >= 9.95 else f"{number:.2g}"


def megabytes(count: int) -> str:
    """Return bytes in millions."""
    return _two_digits(count / 1e6)
