"""The one optimiser step, normalised by target tokens, by one process or by several."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from regard.base.errors import RunError
from regard.compute.device import using_threads
from regard.compute.processes import WorkerLostError, WorkerProcess
from regard.training.losses import LossSum


@runtime_checkable
class Counted(Protocol):
    """A batch that knows how many target tokens it holds."""

    @property
    def target_tokens(self) -> int:
        """Return the number of real target positions."""
        ...


AnyBatch = TypeVar("AnyBatch", bound=Counted)

# (batch, tokens): adds the gradient of the batch's summed loss, divided by `tokens`, to that of the
# parameters, and returns the loss in nats.
AddGradient: TypeAlias = Callable[[AnyBatch, int], float]


@dataclass(frozen=True)
class UpdateResult:
    """What one update saw: mean loss in nats a token, tokens, gradient norm before clipping."""

    loss: float
    tokens: int
    gradient_norm: float
    skipped: bool = False
    """Whether no weight was changed, because loss or gradient was not finite."""


def update(
    batches: Sequence[AnyBatch],
    *,
    add_gradient: AddGradient[AnyBatch],
    parameters: Sequence[nn.Parameter],
    optimizer: torch.optim.Optimizer,
    clip: float,
) -> UpdateResult:
    """Take one step down the gradient of the mean loss over all tokens of these batches.

    If the loss or the gradient is infinite or not a number, the step is skipped.
    """
    tokens = sum(batch.target_tokens for batch in batches)
    optimizer.zero_grad(set_to_none=True)
    nats = sum(add_gradient(batch, tokens) for batch in batches)
    norm = float(nn.utils.clip_grad_norm_(parameters, clip))
    skipped = not (math.isfinite(norm) and math.isfinite(nats))
    if not skipped:
        optimizer.step()
    return UpdateResult(loss=nats / tokens, tokens=tokens, gradient_norm=norm, skipped=skipped)


def add_gradient(loss_sum: Callable[[AnyBatch], LossSum], batch: AnyBatch, tokens: int) -> float:
    """Add the gradient of a batch's summed loss, divided by `tokens`; return the loss in nats."""
    loss = loss_sum(batch)
    (loss.objective / tokens).backward()  # type: ignore[no-untyped-call]
    return float(loss.nats)


MOST_VALUES = 1_000_000  # of one tensor of a batch that is written


def plain_batch(value: Any) -> Any:
    """Return a batch, its tensors and what it consists of, as values for JSON."""
    if isinstance(value, Tensor):
        if value.numel() > MOST_VALUES:
            return f"{value.dtype} of shape {tuple(value.shape)}"
        floats = value.is_floating_point()
        return [str(x) for x in value.flatten().tolist()] if floats else value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain_batch(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple | list):
        return [plain_batch(one) for one in value]
    return value if isinstance(value, int | str | bool | None) else str(value)


LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Sharing(Generic[AnyBatch]):
    """Among how many processes an update is shared out, and how a batch is split for them."""

    processes: int
    split: Callable[[AnyBatch, int], Sequence[AnyBatch]]


@contextmanager
def gradients(
    loss_sum: Callable[[AnyBatch], LossSum],
    parameters: Sequence[nn.Parameter],
    sharing: Sharing[AnyBatch] | None,
) -> Iterator[AddGradient[AnyBatch]]:
    """Yield what adds the gradient of a batch to the parameters, alone or with worker processes.

    Workers share the weights; all else of the model is as it was when they started, so it must be
    in training mode. While there are workers, torch has one thread in this process too.
    """
    alone = partial(add_gradient, loss_sum)
    if sharing is None or sharing.processes == 1:
        yield alone
        return
    for parameter in parameters:
        parameter.data.share_memory_()  # type: ignore[no-untyped-call]
    workers = _GradientWorkers(parameters, alone, sharing.split)
    try:
        for _ in range(sharing.processes - 1):
            workers.start()
        # Also between gradients: threads that took part in the step keep spinning for a while, on
        # the core that a worker needs.
        with using_threads(1):
            yield workers.add_gradient
    finally:
        workers.stop()


class _GradientTask(NamedTuple):
    """A worker's part of a batch, the tokens of the whole update, and a seed for its dropout."""

    part: Any
    tokens: int
    seed: int


class _GradientWorkers(Generic[AnyBatch]):
    """The processes that share the gradient of a batch: this one and its workers."""

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        alone: AddGradient[AnyBatch],
        split: Callable[[AnyBatch, int], Sequence[AnyBatch]],
    ):
        self._parameters = parameters
        self._alone = alone
        self._split = split
        # Each worker with all its gradients, one after the other, in memory that both see.
        self._workers: list[tuple[WorkerProcess, Tensor]] = []

    def start(self) -> None:
        """Start one more worker."""
        gradient = torch.zeros(sum(p.numel() for p in self._parameters))
        gradient.share_memory_()  # type: ignore[no-untyped-call]
        self._workers.append(
            (WorkerProcess(partial(self._work, gradient), outlasts_signals=True), gradient)
        )

    def stop(self) -> None:
        """Stop all workers."""
        for worker, _ in self._workers:
            worker.stop()
        self._workers = []

    def add_gradient(self, batch: AnyBatch, tokens: int) -> float:
        """Add the gradient of the summed loss, divided by `tokens`; return the loss in nats."""
        own, *others = self._split(batch, len(self._workers) + 1)
        # A short batch has fewer parts than there are workers.
        busy = self._workers[: len(others)]
        try:
            for (worker, _), part in zip(busy, others, strict=True):
                worker.send(_GradientTask(part, tokens, int(torch.randint(LARGEST_SEED, (1,)))))
            nats = self._alone(own, tokens)
            nats += sum(float(worker.receive()) for worker, _ in busy)
        except WorkerLostError:
            raise RunError(
                "A worker process of the training has ended, perhaps for lack of memory. Go on "
                "with `regard train --resume`; --set training.processes=1 does without workers."
            ) from None
        for _, gradient in busy:
            self._take_over(gradient)
        return nats

    @torch.no_grad()
    def _take_over(self, gradient: Tensor) -> None:
        for parameter, piece in zip(self._parameters, self._pieces(gradient), strict=True):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad += piece

    def _pieces(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradient of each parameter out of one that holds them all."""
        pieces = torch.split(gradient, [parameter.numel() for parameter in self._parameters])
        return [
            piece.view_as(parameter)
            for piece, parameter in zip(pieces, self._parameters, strict=True)
        ]

    def _work(self, gradient: Tensor, task: _GradientTask) -> float:
        """Compute the gradient of a part of a batch; this runs in a worker."""
        torch.manual_seed(task.seed)
        for parameter in self._parameters:
            parameter.grad = None
        nats = self._alone(task.part, task.tokens)
        for parameter, piece in zip(self._parameters, self._pieces(gradient), strict=True):
            piece.zero_() if parameter.grad is None else piece.copy_(parameter.grad)
        return nats
