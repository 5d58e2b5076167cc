"""Worker processes, each on a core of its own."""

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any
from weakref import WeakSet

import torch

# The ends of all pipes on this side.
_PIPES: WeakSet[Connection] = WeakSet()


class WorkerLostError(Exception):
    """A worker has ended without a reply."""


class WorkerProcess:
    """A worker process; it ends when it is stopped or when this process ends, even if killed.

    One that outlasts signals ignores SIGTERM, which may be sent to all processes of a training at
    once: its first process finishes the update, and has to stop the worker.
    """

    def __init__(self, work: Callable[[Any], Any], *, outlasts_signals: bool = False):
        fork = multiprocessing.get_context("fork")
        self._pipe, its_pipe = fork.Pipe()
        _PIPES.add(self._pipe)
        self.process = fork.Process(
            target=_serve, args=(its_pipe, work, outlasts_signals), daemon=True
        )
        with signals_held():
            self.process.start()
        its_pipe.close()

    def send(self, request: Any) -> None:
        """Send a request; its reply has to be received before the next one is sent."""
        try:
            self._pipe.send(request)
        except OSError:
            raise WorkerLostError from None

    def receive(self) -> Any:
        """Wait for the reply and return it."""
        try:
            return self._pipe.recv()
        except (EOFError, OSError):
            raise WorkerLostError from None

    def stop(self) -> None:
        """End the worker."""
        self._pipe.close()
        self.process.join()


@contextmanager
def signals_held() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait until the block has ended.

    Python forks between callbacks (of `logging`, for one) whose exceptions are printed and lost:
    what a signal's handler raised there would not stop the program.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread runs handlers
        return
    held: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {
        number: signal.signal(number, lambda signum, frame: held.append(signum))
        for number in numbers
        if signal.getsignal(number) is not None  # not one of C, which could not be restored
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for received in held:
            signal.raise_signal(received)


def _serve(pipe: Connection, work: Callable[[Any], Any], outlasts_signals: bool) -> None:
    """Reply to requests until the other end of the pipe is closed: what a worker runs."""
    # Copies of the first process's ends would hide that it has ended.
    for other in list(_PIPES):
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if outlasts_signals else signal.SIG_DFL)
    torch.set_num_threads(1)
    with suppress(EOFError, OSError):
        while True:
            pipe.send(work(pipe.recv()))
