"""Sentences of many requests, gathered into batches for one model.

An idle model waits a moment for company; a busy one takes what has queued up while the last batch
ran. Requests take turns, sentence by sentence, so a short text does not wait behind a long one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from regard.serving.errors import ApiError, BusyError
from regard.tasks.translation.results import Translation

LONGEST_WAIT = 60


class Manner(NamedTuple):
    """What is wanted of a translation beside its text."""

    n_best: int = 1
    attention: bool = False


class Item(NamedTuple):
    """One sentence to translate."""

    text: str
    tokens: int
    manner: Manner


Found = Translation | Exception
# What translates a batch: one result for each item, in order.
RunBatch = Callable[[Sequence[Item]], Awaitable[Sequence[Found]]]


@dataclass(eq=False)
class _Job:
    """The sentences of one request, and what has been found of them."""

    items: Sequence[Item]
    answer: asyncio.Future[list[Translation]]
    found: list[Translation | None]
    next: int = 0
    missing: int = field(init=False)

    def __post_init__(self) -> None:
        self.missing = len(self.items)

    def put(self, place: int, result: Found) -> None:
        """Keep the result of one sentence; the first error is the request's."""
        if self.answer.done():
            return
        if isinstance(result, Exception):
            self.answer.set_exception(result)
            return
        self.found[place] = result
        self.missing -= 1
        if not self.missing:
            self.answer.set_result([one for one in self.found if one is not None])


class Batcher:
    """Holds what waits, and hands it on in batches, one at a time."""

    def __init__(
        self,
        run: RunBatch,
        *,
        sentences: int,
        tokens: int,
        wait: float,
        room: int,
        watch: Callable[[int, int], Any] = lambda sentences, tokens: None,
    ):
        self._run = run
        self._sentences = sentences
        self._tokens = tokens
        self._wait = wait
        self._room = room
        self._watch = watch
        self._jobs: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._speed = 0.0  # sentences a second, of late
        self.waiting = 0

    async def translate(self, items: Sequence[Item]) -> list[Translation]:
        """Return the translations; whoever stops waiting takes their sentences out of the queue."""
        if not items:
            return []
        if len(items) > self._room:
            raise ApiError(
                413, f"The text has {len(items)} sentences, more than {self._room} at once."
            )
        if self.waiting + len(items) > self._room:
            raise BusyError(retry_after=self.seconds_of_work())
        answer: asyncio.Future[list[Translation]] = asyncio.get_running_loop().create_future()
        job = _Job(items, answer, [None] * len(items))
        self._jobs.append(job)
        self.waiting += len(items)
        self._arrived.set()
        try:
            return await answer
        finally:
            self._leave(job)

    def seconds_of_work(self) -> int:
        """Return how long what waits will take, as whole seconds from 1 to 60."""
        seconds = self.waiting / self._speed if self._speed else 1.0
        return max(1, min(LONGEST_WAIT, round(seconds)))

    async def work(self) -> None:
        """Translate what comes, until cancelled."""
        while True:
            if not self._jobs:
                self._arrived.clear()
                await self._arrived.wait()
                if self._wait and self.waiting < self._sentences:
                    await asyncio.sleep(self._wait)
            batch = self._take()
            if batch:
                await self._finish(batch)

    async def _finish(self, batch: Sequence[tuple[_Job, int]]) -> None:
        items = [job.items[place] for job, place in batch]
        start = time.monotonic()
        try:
            results = await self._run(items)
        except Exception as error:  # whatever it was, those who wait must hear of it
            results = [error] * len(items)
        speed = len(items) / max(time.monotonic() - start, 1e-3)
        self._speed = speed if not self._speed else 0.8 * self._speed + 0.2 * speed
        self._watch(len(items), sum(item.tokens for item in items))
        for (job, place), result in zip(batch, results, strict=True):
            job.put(place, result)

    def _take(self) -> list[tuple[_Job, int]]:
        """Return the next batch: one sentence of each request in turn; the first always fits."""
        batch: list[tuple[_Job, int]] = []
        tokens = 0
        while self._jobs and len(batch) < self._sentences:
            job = self._jobs[0]
            if job.answer.done():
                self._leave(job)
                continue
            size = job.items[job.next].tokens
            if batch and tokens + size > self._tokens:
                break
            self._jobs.popleft()
            batch.append((job, job.next))
            tokens += size
            job.next += 1
            self.waiting -= 1
            if job.next < len(job.items):
                self._jobs.append(job)
        return batch

    def _leave(self, job: _Job) -> None:
        """Forget the sentences of a request that nobody has begun with."""
        if job in self._jobs:
            self._jobs.remove(job)
            self.waiting -= len(job.items) - job.next
