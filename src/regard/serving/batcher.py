"""The batcher: sentences of many requests, joined into batches for one model.

An idle model waits a moment for more sentences; a busy one takes what has queued up while the last
batch ran. Requests take turns, sentence by sentence, so a short text does not wait behind a long
one.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from regard.serving.errors import ApiError, BusyError
from regard.tasks.translation.results import Translation

LONGEST_WAIT = 60


class TranslationOptions(NamedTuple):
    """What a request wants in addition to the best translation."""

    n_best: int = 1
    attention: bool = False


class QueuedSentence(NamedTuple):
    """One sentence to translate, with its length in tokens."""

    text: str
    tokens: int
    options: TranslationOptions


TranslationOutcome = Translation | Exception
# Translates a batch: one outcome for each sentence, in order.
RunBatch = Callable[[Sequence[QueuedSentence]], Awaitable[Sequence[TranslationOutcome]]]


@dataclass(eq=False)
class _Job:
    """The sentences of one request, and the translations found so far."""

    sentences: Sequence[QueuedSentence]
    answer: asyncio.Future[list[Translation]]
    translations: list[Translation | None]
    next: int = 0
    missing: int = field(init=False)

    def __post_init__(self) -> None:
        self.missing = len(self.sentences)

    def put(self, place: int, outcome: TranslationOutcome) -> None:
        """Store the outcome of one sentence; the first error fails the whole request."""
        if self.answer.done():
            return
        if isinstance(outcome, Exception):
            self.answer.set_exception(outcome)
            return
        self.translations[place] = outcome
        self.missing -= 1
        if not self.missing:
            self.answer.set_result([one for one in self.translations if one is not None])


class Batcher:
    """Queues sentences and runs them in batches, one batch at a time."""

    def __init__(
        self,
        run_batch: RunBatch,
        *,
        sentences: int,
        tokens: int,
        wait: float,
        capacity: int,
        on_batch: Callable[[int, int], Any] = lambda sentences, tokens: None,
    ):
        self._run_batch = run_batch
        self._sentences = sentences
        self._tokens = tokens
        self._wait = wait
        self._capacity = capacity
        self._on_batch = on_batch
        self._jobs: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._speed = 0.0  # sentences per second, a moving average
        self.waiting = 0

    async def translate(self, sentences: Sequence[QueuedSentence]) -> list[Translation]:
        """Return the translations; a caller that is cancelled leaves the queue."""
        if not sentences:
            return []
        if len(sentences) > self._capacity:
            raise ApiError(
                413, f"The text has {len(sentences)} sentences, more than {self._capacity} at once."
            )
        if self.waiting + len(sentences) > self._capacity:
            raise BusyError(retry_after=self.seconds_of_work())
        answer: asyncio.Future[list[Translation]] = asyncio.get_running_loop().create_future()
        job = _Job(sentences, answer, [None] * len(sentences))
        self._jobs.append(job)
        self.waiting += len(sentences)
        self._arrived.set()
        try:
            return await answer
        finally:
            self._remove(job)

    def seconds_of_work(self) -> int:
        """Return how long the queue will take, in whole seconds from 1 to 60."""
        seconds = self.waiting / self._speed if self._speed else 1.0
        return max(1, min(LONGEST_WAIT, round(seconds)))

    async def run(self) -> None:
        """Translate what arrives, until cancelled."""
        while True:
            if not self._jobs:
                self._arrived.clear()
                await self._arrived.wait()
                if self._wait and self.waiting < self._sentences:
                    await asyncio.sleep(self._wait)
            batch = self._next_batch()
            if batch:
                await self._finish(batch)

    async def _finish(self, batch: Sequence[tuple[_Job, int]]) -> None:
        sentences = [job.sentences[place] for job, place in batch]
        start = time.monotonic()
        try:
            outcomes = await self._run_batch(sentences)
            if len(outcomes) != len(sentences):
                raise RuntimeError(f"{len(outcomes)} outcomes for {len(sentences)} sentences")
        except Exception as error:  # every request of the batch fails with it
            outcomes = [error] * len(sentences)
        speed = len(sentences) / max(time.monotonic() - start, 1e-3)
        self._speed = speed if not self._speed else 0.8 * self._speed + 0.2 * speed
        self._on_batch(len(sentences), sum(sentence.tokens for sentence in sentences))
        for (job, place), outcome in zip(batch, outcomes, strict=True):
            job.put(place, outcome)

    def _next_batch(self) -> list[tuple[_Job, int]]:
        """Return the next batch: one sentence of each request in turn; the first always fits."""
        batch: list[tuple[_Job, int]] = []
        tokens = 0
        while self._jobs and len(batch) < self._sentences:
            job = self._jobs[0]
            if job.answer.done():
                self._remove(job)
                continue
            size = job.sentences[job.next].tokens
            if batch and tokens + size > self._tokens:
                break
            self._jobs.popleft()
            batch.append((job, job.next))
            tokens += size
            job.next += 1
            self.waiting -= 1
            if job.next < len(job.sentences):
                self._jobs.append(job)
        return batch

    def _remove(self, job: _Job) -> None:
        """Take the sentences of a request that no batch holds yet out of the queue."""
        if job in self._jobs:
            self._jobs.remove(job)
            self.waiting -= len(job.sentences) - job.next
