"""The updates of a training, by one process or by several that take the same steps.

Every process reads the same batches, computes the gradient of its part of each, and after the sum
over all of them takes the same step (Li et al. 2020, PyTorch Distributed). Parts and their seeds
are functions of the number of processes alone, so it does not matter which process computes one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Generic, NamedTuple

import torch
from torch import Tensor, nn

from regard.base.errors import RegardError, RunError
from regard.batching.order import BatchPosition
from regard.compute.device import using_threads
from regard.compute.group import Group, computing_together, current_group, local_group
from regard.training import averages
from regard.training.objective import AnyBatch, Objective, Optimisation, Validation
from regard.training.progress import Progress
from regard.training.update import UpdateResult, add_gradient, update

LARGEST_SEED = 2**63 - 1


class Taken(NamedTuple):
    """One update that was taken: what it saw, where the data is now, and its batches."""

    result: UpdateResult
    place: BatchPosition
    facts: dict[str, float]
    batches: list[Any]


class Updates(Generic[AnyBatch]):
    """Takes the updates of a training: on the process that leads, or on one that follows it."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective[AnyBatch],
        optimisation: Optimisation[AnyBatch],
        group: Group,
        *,
        note: Callable[[str], None] = lambda line: None,
    ):
        self.model, self.objective, self.optimisation = model, objective, optimisation
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.group = group
        self.threads: Callable[[], AbstractContextManager[None]] = nullcontext
        """The context of what the leader does alone."""
        self._balance = Balance(group, note=note)
        self._seconds = 0.0
        self._batches: Iterator[tuple[BatchPosition, AnyBatch]] = iter(())

    def begin(self, epoch: int, batch: int) -> None:
        """Read the data from this place on."""
        if self.group.when_prepared is not None:
            self.group.when_prepared()
            self.group.when_prepared = None
        if self.group.size > 1 and self.group.leads:
            state = _described_state(self.optimisation.optimizer) if self.group.launched else None
            self.group.tell({"do": "begin", "place": [epoch, batch], "state": state})
        if self.group.launched:
            self.group.send_from_leader(_state_tensors(self.model, self.optimisation.optimizer))
        self._batches = self.objective.batches_from(epoch, batch)

    def take(self, step: int) -> Taken:
        """Take the update of this number, counted from 1; the others of the group do the same."""
        if self.group.size == 1:
            return self._take(step, partial(add_gradient, self.objective.loss_sum), None)
        seed, alone = int(torch.randint(LARGEST_SEED, (1,))), self._balance.alone
        share = self.optimisation.completion.share
        order = {"do": "update", "step": step, "share": share, "seed": seed, "alone": alone}
        began = time.perf_counter()
        self.group.tell(order)
        taken = self._take_part(order)
        self._balance.saw(
            taken.result.tokens, seconds=time.perf_counter() - began, computing=self._seconds
        )
        return taken

    def validate(self, *, changed: bool = False, final: bool = False) -> Validation:
        """Return what a validation finds; `changed` says that the leader has put in weights."""
        if self.group.size == 1 or not self.objective.validates_together:
            with self.threads():
                return self._validator(final=final)()
        self.group.tell({"do": "validate", "changed": changed, "final": final})
        if changed:
            self.group.send_from_leader(list(self.model.parameters()))
        with computing_together(self.group):
            return self._validator(final=final)()

    def end(self, progress: Progress) -> None:
        """Let the others go."""
        if self.group.size > 1:
            self.group.tell({"do": "end", "progress": asdict(progress)})

    def follow(self) -> Progress:
        """Do what the leader says until it ends the training."""
        while (order := self.group.hear())["do"] != "end":
            if order["do"] == "begin":
                _take_over(self.optimisation.optimizer, order["state"])
                self.begin(*order["place"])
            elif order["do"] == "update":
                self.model.train()
                self.optimisation.completion.share = order["share"]
                self._take_part(order)
            else:
                self._validate_along(order)
        return Progress(**order["progress"])

    def _take(
        self,
        step: int,
        add: Callable[[AnyBatch, int], Tensor],
        add_up: Callable[[float, int], float] | None,
    ) -> Taken:
        optimisation = self.optimisation
        taken = list(islice(self._batches, optimisation.accumulate))
        batches = [batch for _, batch in taken]
        rate = optimisation.set_learning_rate(step)
        result = update(
            batches,
            add_gradient=add,
            parameters=self.parameters,
            optimizer=optimisation.optimizer,
            clip=optimisation.clip,
            add_up=add_up,
        )
        if optimisation.moving is not None and not result.skipped and self.group.leads:
            optimisation.moving.update(step)
        padding = sum(batch.padding_share for batch in batches) / len(batches)
        return Taken(result, taken[-1][0], {"learning_rate": rate, "padding": padding}, batches)

    def _take_part(self, order: dict[str, Any]) -> Taken:
        """Take an update with the others; the leader's random state is left as it is."""
        with torch.random.fork_rng(enabled=self.group.leads):
            self._seconds = 0.0
            numbers = self._own_parts(alone=order["alone"])
            add = partial(self._add_parts, numbers, order["seed"])
            return self._take(order["step"], add, self._add_up)

    def _own_parts(self, *, alone: bool) -> Sequence[int]:
        """Return which parts of a batch this process computes."""
        if alone:
            return range(self.group.size) if self.group.leads else ()
        return (self.group.rank,)

    def _add_parts(self, numbers: Sequence[int], seed: int, batch: AnyBatch, tokens: int) -> Tensor:
        """Add the gradients of these parts of a batch, which may have fewer; return the loss."""
        if self.optimisation.sharing is None:
            raise RunError("This training does not say how its batches are shared out.")
        began = time.thread_time()
        parts = self.optimisation.sharing.split(batch, self.group.size)
        nats = 0.0
        for number in numbers:
            if number < len(parts):
                torch.manual_seed((seed + number) % LARGEST_SEED)
                nats += float(add_gradient(self.objective.loss_sum, parts[number], tokens))
        self._seconds += time.thread_time() - began
        return torch.tensor(nats, dtype=torch.float64)

    @torch.no_grad()
    def _add_up(self, nats: float, tokens: int) -> float:
        """Sum gradients and loss over all processes; a parameter without any stays without."""
        has = [float(p.grad is not None) for p in self.parameters]
        facts = torch.tensor([nats, float(tokens), self._seconds, *has], dtype=torch.float64)
        self.group.add_up([facts])
        nats, counted, self._seconds, *reached = facts.tolist()
        if counted != self.group.size * tokens:
            self.group.let_the_leader_end()
            raise RunError(
                "The processes of the training read different batches. Give all of them the same "
                "data."
            )
        gradients = []
        for parameter, count in zip(self.parameters, reached, strict=True):
            if count and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if parameter.grad is not None:
                gradients.append(parameter.grad)
        self.group.add_up(gradients)
        return float(nats)

    def _validator(self, *, final: bool) -> Callable[[], Validation]:
        chosen = self.objective.final_validate if final else None
        return chosen or self.objective.validate

    def _validate_along(self, order: dict[str, Any]) -> None:
        """Do a share of a validation, whose result the leader has too."""
        own = averages.named_weights(self.model) if order["changed"] else None
        if own is not None:
            self.group.send_from_leader(list(self.model.parameters()))
        self.model.eval()
        try:
            with torch.no_grad(), computing_together(self.group):
                self._validator(final=order["final"])()
        except RegardError:  # the leader has it too, and says what follows
            if self.group.is_lost:
                raise
        if own is not None:
            averages.load_named(self.model, own)


@contextmanager
def taking_updates(
    model: nn.Module,
    objective: Objective[AnyBatch],
    optimisation: Optimisation[AnyBatch],
    *,
    note: Callable[[str], None] = lambda line: None,
) -> Iterator[Updates[AnyBatch]]:
    """Yield what takes the updates of a training, with the processes that it asks for.

    Processes that are started here have a thread each, also the leader: threads that took part in
    a step keep spinning for a while, on the core that another process needs.
    """
    sharing = optimisation.sharing
    processes = 1 if sharing is None else sharing.processes

    def follow(group: Group) -> None:
        Updates(model, objective, optimisation, group).follow()

    with local_group(processes, follow) as group:
        updates = Updates(model, objective, optimisation, group, note=note)
        if group.size == 1 or group.launched:
            yield updates
            return
        updates.threads = partial(using_threads, torch.get_num_threads())
        with using_threads(1):
            yield updates


def follow_launched(
    model: nn.Module,
    objective: Objective[AnyBatch],
    optimisation: Optimisation[AnyBatch],
    *,
    last: bool,
) -> Progress:
    """Follow the leader through a training, as a process that torchrun has started.

    After the last one this process ends: what follows is the leader's.
    """
    progress = Updates(model, objective, optimisation, current_group()).follow()
    if last:
        sys.exit(0)
    return progress


WINDOW = 8  # updates that are compared
HELD = 300.0  # seconds until a decision is looked at again


@dataclass
class Balance:
    """Decides when the leader computes all parts: where another program holds the cores.

    Processes wait for the slowest. If an update takes longer than its computation would take one
    process after the other, one process is tried, and the faster way is kept for some minutes.
    """

    group: Group
    note: Callable[[str], None]
    alone: bool = False
    _window: list[tuple[int, float, float]] = field(default_factory=list)
    _together: float = 0.0
    """Tokens a second of all processes, while one of them is tried."""
    _settled: float = 0.0
    """When the last decision was made."""

    def saw(self, tokens: int, *, seconds: float, computing: float) -> None:
        """Take note of an update: its time, and the seconds of computing of all processes."""
        if self.group.launched:  # there, cores are given by whoever starts the processes
            return
        self._window = [*self._window[1 - WINDOW :], (tokens, seconds, computing)]
        if len(self._window) < WINDOW:
            return
        counted, took, computed = (sum(column) for column in zip(*self._window, strict=True))
        now = time.monotonic()
        if self._together:
            self._decide(counted / took, now)
        elif self.alone and now - self._settled > HELD:
            self.alone, self._window = False, []
        elif (
            not self.alone and took > computed and now - self._settled > HELD * (self._settled > 0)
        ):
            self._together, self.alone, self._window = counted / took, True, []

    def _decide(self, speed: float, now: float) -> None:
        """Keep the faster way for some time."""
        self.alone = speed > self._together
        if self.alone:
            self.note(
                f"{self.group.size} processes train at {self._together:,.0f} tokens/s and one at "
                f"{speed:,.0f}, as other programs use the cores: going on with one for a while"
            )
        self._together, self._settled, self._window = 0.0, now, []


def _state_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return what all processes begin with, in an order that all of them know."""
    state = optimizer.state_dict()["state"]
    kept = [state[index][name] for index in sorted(state) for name in sorted(state[index])]
    return [*model.parameters(), *model.buffers(), *kept]


def _described_state(optimizer: torch.optim.Optimizer) -> list[list[Any]]:
    """Return number, name and shape of what the optimiser remembers."""
    state = optimizer.state_dict()["state"]
    return [
        [index, name, list(state[index][name].shape)]
        for index in sorted(state)
        for name in sorted(state[index])
    ]


def _take_over(optimizer: torch.optim.Optimizer, described: list[list[Any]] | None) -> None:
    """Make room for what the leader's optimiser remembers."""
    if described is None:
        return
    state: dict[int, dict[str, Tensor]] = {}
    for index, name, shape in described:
        state.setdefault(index, {})[name] = torch.zeros(shape)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
