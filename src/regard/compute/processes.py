"""Work shared out: worker processes, each on a core of its own, and threads that prefetch."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar
from weakref import WeakSet

import torch
from torch import nn

from regard.base.errors import SettingsError

# A GPU cannot be used from a copy of a process.
CAN_FORK = sys.platform == "linux" and not torch.accelerator.is_available()
# The ends of all lines on this side.
_LINES: WeakSet[Connection] = WeakSet()


class WorkerLostError(Exception):
    """A helper has ended without an answer."""


class WorkerProcess:
    """One helper; it ends when it is dismissed, or when this process does, however it does."""

    def __init__(self, answer: Callable[[Any], Any]):
        fork = multiprocessing.get_context("fork")
        self._line, its_line = fork.Pipe()
        _LINES.add(self._line)
        self.process = fork.Process(target=_work, args=(its_line, answer), daemon=True)
        self.process.start()
        its_line.close()

    def ask(self, question: Any) -> None:
        """Send a question; the answer has to be heard before the next one."""
        try:
            self._line.send(question)
        except OSError:
            raise WorkerLostError from None

    def hear(self) -> Any:
        """Wait for the answer."""
        try:
            return self._line.recv()
        except (EOFError, OSError):
            raise WorkerLostError from None

    def dismiss(self) -> None:
        """End the helper."""
        self._line.close()
        self.process.join()


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let torch's operations have so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _work(line: Connection, answer: Callable[[Any], Any]) -> None:
    """Answer until nobody is at the other end of the line: a helper's life."""
    # Copies of the first process's ends would hide that it has ended.
    for other in list(_LINES):
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    with suppress(EOFError, OSError):
        while True:
            line.send(answer(line.recv()))


Item = TypeVar("Item")
Result = TypeVar("Result")


def prefetch(
    work: Callable[[Item], Result], items: Iterable[Item], *, at_once: int
) -> Iterator[Result]:
    """Yield what the work makes of each item, in order, while threads are at the next ones.

    So many items are worked on at once, and one more waits. What fails is raised in its turn. With
    one at once there are no threads.
    """
    if at_once == 1:
        for item in items:
            yield work(item)
        return
    begun: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for item in items:
                begun.append(pool.submit(work, item))
                if len(begun) > at_once:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            for future in begun:
                future.cancel()


# The operations of a larger model are large enough for threads to share.
MOST_PARAMETERS = 20_000_000
# With fewer symbols, a process has too little to do.
FEWEST_TOKENS = 2_000


def processes_for(
    model: nn.Module, *, wanted: int | None, tokens: int, compiled: bool = False
) -> int:
    """Return how many processes are asked for or, if nothing is, how many are worth their while.

    `tokens` are the symbols of a batch.
    """
    possible = CAN_FORK and not compiled
    if wanted is not None and wanted > 1 and not possible:
        raise SettingsError(
            f"training.processes = {wanted} needs Linux, no GPU and no training.compile; "
            "set it to 1 or leave it out."
        )
    if wanted is not None:
        return wanted
    if not possible or sum(parameter.numel() for parameter in model.parameters()) > MOST_PARAMETERS:
        return 1
    return max(1, min(torch.get_num_threads(), tokens // FEWEST_TOKENS))


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
