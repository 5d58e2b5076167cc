"""Helpers that compute a part of every gradient, each a process on a core of its own.

Threads share out the work inside an operation, and the operations of a small model are too small
to keep several cores busy; processes that each take a part of the sentences do. The weights lie in
memory that all of them see, so nothing but sentences and gradients changes hands: the first process
sends each helper its part of a batch, adds the gradients that come back to its own, and takes the
step alone. Helpers begin as copies of the first process, so this is for Linux.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, NamedTuple

import torch
from torch import Tensor, nn

from regard.base.errors import RunError
from regard.training.loss import LossSum
from regard.training.update import AddGradient, AnyBatch, add_gradient

FORK = sys.platform == "linux"
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
    """Yield what adds the gradient of a batch to the parameters, alone or with helpers.

    Helpers see the model as it is at the beginning, but for its weights: it must be in training.
    """
    alone = partial(add_gradient, loss_sum)
    if sharing is None or sharing.processes == 1:
        yield alone
        return
    for parameter in parameters:
        parameter.data.share_memory_()  # type: ignore[no-untyped-call]
    crew = _Crew(parameters, alone, sharing.split)
    try:
        for _ in range(sharing.processes - 1):
            crew.hire()
        yield crew.add_gradient
    finally:
        crew.dismiss()


class _Task(NamedTuple):
    """A helper's part of a batch, the tokens of the whole update, and a seed for its dropout."""

    part: Any
    tokens: int
    seed: int


class _Helper(NamedTuple):
    process: BaseProcess
    line: Connection
    gradient: Tensor
    """All gradients of the helper, one after the other, in memory that both see."""


class _Crew(Generic[AnyBatch]):
    """This process and its helpers."""

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        alone: AddGradient[AnyBatch],
        split: Callable[[AnyBatch, int], Sequence[AnyBatch]],
    ):
        self._parameters = parameters
        self._alone = alone
        self._split = split
        self._helpers: list[_Helper] = []

    def hire(self) -> None:
        """Begin one more helper."""
        fork = multiprocessing.get_context("fork")
        here, there = fork.Pipe()
        gradient = torch.zeros(sum(p.numel() for p in self._parameters))
        gradient.share_memory_()  # type: ignore[no-untyped-call]
        process = fork.Process(target=self._help, args=(here, there, gradient), daemon=True)
        process.start()
        there.close()
        self._helpers.append(_Helper(process, here, gradient))

    def dismiss(self) -> None:
        """End all helpers."""
        for helper in self._helpers:
            helper.line.close()
            helper.process.join()
        self._helpers = []

    def add_gradient(self, batch: AnyBatch, tokens: int) -> float:
        """Add the gradient of the summed loss, divided by `tokens`; return the loss in nats."""
        own, *others = self._split(batch, len(self._helpers) + 1)
        # A short batch has fewer parts than there are helpers.
        busy = self._helpers[: len(others)]
        with _threads(1):
            try:
                for helper, part in zip(busy, others, strict=True):
                    seed = int(torch.randint(LARGEST_SEED, (1,)))
                    helper.line.send(_Task(part, tokens, seed))
                nats = self._alone(own, tokens)
                for helper in busy:
                    nats += helper.line.recv()
            except (EOFError, OSError):
                raise RunError(
                    "A helper process of the training has ended, perhaps for want of memory. Go on "
                    "with --resume; with --set training.processes=1 there are no helpers."
                ) from None
            for helper in busy:
                self._take_over(helper.gradient)
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

    def _help(self, parents: Connection, line: Connection, gradient: Tensor) -> None:
        """Compute gradients until nobody is at the other end of the line: a helper's life."""
        # Nobody is there when the first process has ended, however it did: a copy of its end of
        # the line that stayed open here would hide that.
        parents.close()
        for older in self._helpers:
            older.line.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        torch.set_num_threads(1)
        pieces = self._pieces(gradient)
        with suppress(EOFError, OSError):
            while True:
                task: _Task = line.recv()
                torch.manual_seed(task.seed)
                for parameter in self._parameters:
                    parameter.grad = None
                nats = self._alone(task.part, task.tokens)
                for parameter, piece in zip(self._parameters, pieces, strict=True):
                    piece.zero_() if parameter.grad is None else piece.copy_(parameter.grad)
                line.send(nats)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let operations have so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
