"""Worker processes, each on a core of its own."""

import multiprocessing
import os
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
    """A worker process; it ends when it is stopped or when this process ends, even if killed."""

    def __init__(self, work: Callable[[Any], Any]):
        fork = multiprocessing.get_context("fork")
        self._pipe, its_pipe = fork.Pipe()
        _PIPES.add(self._pipe)
        self.process = fork.Process(target=_serve, args=(its_pipe, work), daemon=True)
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


class ForkedProcess:
    """A copy of this process that runs `work(first message, number)`; it ends when this one does.

    It ignores signals to stop, which may be sent to all processes of a training at once: the first
    one finishes the update, for which it needs the others, and ends them.
    """

    def __init__(self, work: Callable[[Any, int], None], number: int):
        fork = multiprocessing.get_context("fork")
        self._pipe, its_pipe = fork.Pipe()
        _PIPES.add(self._pipe)
        self.process = fork.Process(target=_run, args=(its_pipe, work, number), daemon=True)
        with signals_held():
            self.process.start()
        its_pipe.close()

    def begin(self, message: Any) -> None:
        """Send the first message, which the copy waits for."""
        self._pipe.send(message)

    def stop(self) -> None:
        """End the process at once: it has nothing to tidy up."""
        self.process.kill()
        self.process.join()
        self._pipe.close()


def _run(pipe: Connection, work: Callable[[Any, int], None], number: int) -> None:
    for other in list(_PIPES):
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    torch.set_num_threads(1)
    with suppress(EOFError, OSError):
        message = pipe.recv()
        threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
        work(message, number)


def _end_with(pipe: Connection) -> None:
    """End this process when the other end of the pipe is closed."""
    with suppress(EOFError, OSError):
        pipe.recv()
    os._exit(1)


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


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """Reply to requests until the other end of the pipe is closed: what a worker runs."""
    # Copies of the first process's ends would hide that it has ended.
    for other in list(_PIPES):
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    with suppress(EOFError, OSError):
        while True:
            pipe.send(work(pipe.recv()))
