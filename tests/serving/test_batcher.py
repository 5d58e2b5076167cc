"""The batcher: each request gets its own answers, in turn, within the limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.serving.batcher import Batcher, QueuedSentence, TranslationOptions, TranslationOutcome
from regard.serving.errors import ApiError, BusyError
from regard.tasks.translation.results import Translation


def queued(*texts: str) -> list[QueuedSentence]:
    return [QueuedSentence(text, len(text), TranslationOptions()) for text in texts]


def upper_case(text: str) -> Translation:
    return Translation(text, text.upper(), 0.0, 0.0, None)


class Recorder:
    """Translates into upper case and records the batches; each waits until the gate is open."""

    def __init__(self, *, gated: bool = False):
        self.batches: list[list[str]] = []
        self.gate = asyncio.Event()
        if not gated:
            self.gate.set()

    async def __call__(self, batch: Sequence[QueuedSentence]) -> list[TranslationOutcome]:
        self.batches.append([sentence.text for sentence in batch])
        await self.gate.wait()
        return [
            ValueError(sentence.text)
            if sentence.text.startswith("bad")
            else upper_case(sentence.text)
            for sentence in batch
        ]


def run_batcher(
    scenario: Callable[[Batcher, Recorder], Awaitable[Any]],
    *,
    gated: bool = False,
    run_batch: Any = None,
    **changes: Any,
) -> Any:
    """Run a batcher while a scenario lasts."""

    async def main() -> Any:
        recorder = Recorder(gated=gated)
        options = {"sentences": 4, "tokens": 1_000, "wait": 0.0, "capacity": 100, **changes}
        batcher = Batcher(run_batch or recorder, **options)
        work = asyncio.create_task(batcher.run())
        try:
            return await scenario(batcher, recorder)
        finally:
            work.cancel()

    return asyncio.run(main())


async def turns(count: int = 5) -> None:
    """Let all other tasks run for a few turns of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


@settings(deadline=None, max_examples=60)
@given(
    requests=st.lists(st.lists(st.text("abc", min_size=1, max_size=5), max_size=6), max_size=8),
    sentences=st.integers(1, 9),
    tokens=st.integers(1, 20),
)
def test_each_request_gets_its_own_translations(
    requests: list[list[str]], sentences: int, tokens: int
) -> None:
    async def scenario(batcher: Batcher, recorder: Recorder) -> None:
        found = await asyncio.gather(*(batcher.translate(queued(*texts)) for texts in requests))
        assert [[one.text for one in some] for some in found] == [
            [text.upper() for text in texts] for texts in requests
        ]
        assert all(len(batch) <= sentences for batch in recorder.batches)
        assert all(len(b) == 1 or sum(map(len, b)) <= tokens for b in recorder.batches)
        assert batcher.waiting == 0

    run_batcher(scenario, sentences=sentences, tokens=tokens)


def test_what_queues_while_a_batch_runs_becomes_the_next_batch() -> None:
    async def scenario(batcher: Batcher, recorder: Recorder) -> None:
        waiting = [asyncio.create_task(batcher.translate(queued("a")))]
        await turns()
        waiting += [asyncio.create_task(batcher.translate(queued(name))) for name in "bcd"]
        await turns()
        assert recorder.batches == [["a"]]
        assert batcher.waiting == 3
        recorder.gate.set()
        await asyncio.gather(*waiting)
        assert recorder.batches == [["a"], ["b", "c", "d"]]

    run_batcher(scenario, gated=True)


def test_an_idle_model_waits_a_moment_for_more_sentences() -> None:
    async def scenario(batcher: Batcher, recorder: Recorder) -> None:
        first = asyncio.create_task(batcher.translate(queued("a")))
        await turns()
        await asyncio.gather(first, batcher.translate(queued("b")))
        assert recorder.batches == [["a", "b"]]

    run_batcher(scenario, wait=0.05)


def test_a_short_text_does_not_wait_behind_a_long_one() -> None:
    async def scenario(batcher: Batcher, recorder: Recorder) -> None:
        first = asyncio.create_task(batcher.translate(queued("x")))
        await turns()
        long = asyncio.create_task(batcher.translate(queued(*"abcdefgh")))
        await turns()
        short = asyncio.create_task(batcher.translate(queued("z")))
        await turns()
        recorder.gate.set()
        await asyncio.gather(first, long, short)
        assert recorder.batches[1] == ["a", "z", "b", "c"]

    run_batcher(scenario, gated=True)


def test_a_full_queue_says_when_to_retry() -> None:
    async def scenario(batcher: Batcher, recorder: Recorder) -> None:
        first = asyncio.create_task(batcher.translate(queued("a")))
        await turns()
        waiting = asyncio.create_task(batcher.translate(queued("b", "c")))
        await turns()
        with pytest.raises(BusyError) as caught:
            await batcher.translate(queued("d", "e"))
        assert caught.value.status == 429
        assert 1 <= (caught.value.retry_after or 0) <= 60
        recorder.gate.set()
        await asyncio.gather(first, waiting)
        assert [one.text for one in await batcher.translate(queued("d", "e"))] == ["D", "E"]

    run_batcher(scenario, gated=True, capacity=3)


def test_a_text_larger_than_the_queue_is_refused() -> None:
    async def scenario(batcher: Batcher, recorder: Recorder) -> None:
        with pytest.raises(
            ApiError, match="The text has 4 sentences, more than 3 at once"
        ) as error:
            await batcher.translate(queued(*"abcd"))
        assert error.value.status == 413

    run_batcher(scenario, capacity=3)


def test_a_cancelled_request_leaves_the_queue() -> None:
    async def scenario(batcher: Batcher, recorder: Recorder) -> None:
        first = asyncio.create_task(batcher.translate(queued("a")))
        await turns()
        leaving = asyncio.create_task(batcher.translate(queued("b", "c")))
        staying = asyncio.create_task(batcher.translate(queued("d")))
        await turns()
        leaving.cancel()
        await turns()
        assert batcher.waiting == 1
        recorder.gate.set()
        await asyncio.gather(first, staying)
        assert recorder.batches == [["a"], ["d"]]

    run_batcher(scenario, gated=True)


def test_a_bad_sentence_fails_only_its_own_request() -> None:
    async def scenario(batcher: Batcher, recorder: Recorder) -> None:
        found = await asyncio.gather(
            batcher.translate(queued("bad", "a", "bad too", "b", "c", "d")),
            batcher.translate(queued("fine")),
            return_exceptions=True,
        )
        assert isinstance(found[0], ValueError)
        assert [one.text for one in found[1]] == ["FINE"]
        assert batcher.waiting == 0

    run_batcher(scenario)


def test_a_failed_batch_fails_its_requests() -> None:
    async def broken(batch: Sequence[QueuedSentence]) -> list[TranslationOutcome]:
        raise RuntimeError("no model")

    async def scenario(batcher: Batcher, recorder: Recorder) -> None:
        with pytest.raises(RuntimeError, match="no model"):
            await batcher.translate(queued("a"))

    run_batcher(scenario, run_batch=broken)


def test_an_empty_request_runs_no_batch() -> None:
    async def scenario(batcher: Batcher, recorder: Recorder) -> None:
        assert await batcher.translate([]) == []
        assert recorder.batches == []

    run_batcher(scenario)
