"""Helpers: copies of this process that answer questions, each on a core of its own.

Threads share out the work inside an operation. Where operations are small, processes that each take
a part of the sentences may keep the cores busier. A helper begins with everything that this process
has, so that only questions and answers change hands. For Linux.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any
from weakref import WeakSet

import torch

# A GPU cannot be used from a copy of a process.
CAN_HAVE_HELPERS = sys.platform == "linux" and not torch.accelerator.is_available()

# The ends of all lines on this side.
_LINES: WeakSet[Connection] = WeakSet()


class HelperLostError(Exception):
    """A helper has ended without an answer."""


class Helper:
    """One helper; it ends when it is dismissed, or when this process does, however it does."""

    def __init__(self, answer: Callable[[Any], Any]):
        fork = multiprocessing.get_context("fork")
        self._line, its_line = fork.Pipe()
        _LINES.add(self._line)
        self.process = fork.Process(target=_serve, args=(its_line, answer), daemon=True)
        self.process.start()
        its_line.close()

    def ask(self, question: Any) -> None:
        """Send a question; the answer has to be heard before the next one."""
        try:
            self._line.send(question)
        except OSError:
            raise HelperLostError from None

    def hear(self) -> Any:
        """Wait for the answer."""
        try:
            return self._line.recv()
        except (EOFError, OSError):
            raise HelperLostError from None

    def dismiss(self) -> None:
        """End the helper."""
        self._line.close()
        self.process.join()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch's operations have so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _serve(line: Connection, answer: Callable[[Any], Any]) -> None:
    """Answer until nobody is at the other end of the line: a helper's life."""
    # Copies of the first process's ends would hide that it has ended.
    for other in list(_LINES):
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    with suppress(EOFError, OSError):
        while True:
            line.send(answer(line.recv()))
