"""Batches: everybody gets their own answer, in turn, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.serving.batcher import Batcher, Found, Item, Manner
from regard.serving.errors import ApiError, BusyError
from regard.tasks.translation.results import Translation


def items(*texts: str) -> list[Item]:
    return [Item(text, len(text), Manner()) for text in texts]


def shouted(text: str) -> Translation:
    return Translation(text, text.upper(), 0.0, 0.0, None)


class Recorder:
    """Translates by shouting, and remembers the batches; each waits until it may go on."""

    def __init__(self, *, gated: bool = False):
        self.batches: list[list[str]] = []
        self.gate = asyncio.Event()
        if not gated:
            self.gate.set()

    async def __call__(self, batch: Sequence[Item]) -> list[Found]:
        self.batches.append([item.text for item in batch])
        await self.gate.wait()
        return [
            ValueError(item.text) if item.text.startswith("bad") else shouted(item.text)
            for item in batch
        ]


def at_work(
    story: Callable[[Batcher, Recorder], Awaitable[Any]],
    *,
    gated: bool = False,
    run: Any = None,
    **changes: Any,
) -> Any:
    """Let a gatherer work while a story is told."""

    async def main() -> Any:
        recorder = Recorder(gated=gated)
        options = {"sentences": 4, "tokens": 1_000, "wait": 0.0, "room": 100, **changes}
        gatherer = Batcher(run or recorder, **options)
        work = asyncio.create_task(gatherer.work())
        try:
            return await story(gatherer, recorder)
        finally:
            work.cancel()

    return asyncio.run(main())


async def turns(count: int = 5) -> None:
    """Let everything else go on for a few turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


@settings(deadline=None, max_examples=60)
@given(
    requests=st.lists(st.lists(st.text("abc", min_size=1, max_size=5), max_size=6), max_size=8),
    sentences=st.integers(1, 9),
    tokens=st.integers(1, 20),
)
def test_everybody_gets_their_own_answers(
    requests: list[list[str]], sentences: int, tokens: int
) -> None:
    async def story(gatherer: Batcher, recorder: Recorder) -> None:
        found = await asyncio.gather(*(gatherer.translate(items(*texts)) for texts in requests))
        assert [[one.text for one in some] for some in found] == [
            [text.upper() for text in texts] for texts in requests
        ]
        assert all(len(batch) <= sentences for batch in recorder.batches)
        assert all(len(b) == 1 or sum(map(len, b)) <= tokens for b in recorder.batches)
        assert gatherer.waiting == 0

    at_work(story, sentences=sentences, tokens=tokens)


def test_what_queues_while_a_batch_runs_becomes_the_next_batch() -> None:
    async def story(gatherer: Batcher, recorder: Recorder) -> None:
        waiting = [asyncio.create_task(gatherer.translate(items("a")))]
        await turns()
        waiting += [asyncio.create_task(gatherer.translate(items(name))) for name in "bcd"]
        await turns()
        assert recorder.batches == [["a"]]
        assert gatherer.waiting == 3
        recorder.gate.set()
        await asyncio.gather(*waiting)
        assert recorder.batches == [["a"], ["b", "c", "d"]]

    at_work(story, gated=True)


def test_an_idle_model_waits_a_moment_for_company() -> None:
    async def story(gatherer: Batcher, recorder: Recorder) -> None:
        first = asyncio.create_task(gatherer.translate(items("a")))
        await turns()
        await asyncio.gather(first, gatherer.translate(items("b")))
        assert recorder.batches == [["a", "b"]]

    at_work(story, wait=0.05)


def test_a_short_text_does_not_wait_behind_a_long_one() -> None:
    async def story(gatherer: Batcher, recorder: Recorder) -> None:
        first = asyncio.create_task(gatherer.translate(items("x")))
        await turns()
        long = asyncio.create_task(gatherer.translate(items(*"abcdefgh")))
        await turns()
        short = asyncio.create_task(gatherer.translate(items("z")))
        await turns()
        recorder.gate.set()
        await asyncio.gather(first, long, short)
        assert recorder.batches[1] == ["a", "z", "b", "c"]

    at_work(story, gated=True)


def test_a_full_queue_says_when_to_come_back() -> None:
    async def story(gatherer: Batcher, recorder: Recorder) -> None:
        first = asyncio.create_task(gatherer.translate(items("a")))
        await turns()
        waiting = asyncio.create_task(gatherer.translate(items("b", "c")))
        await turns()
        with pytest.raises(BusyError) as caught:
            await gatherer.translate(items("d", "e"))
        assert caught.value.status == 429
        assert 1 <= (caught.value.retry_after or 0) <= 60
        recorder.gate.set()
        await asyncio.gather(first, waiting)
        assert [one.text for one in await gatherer.translate(items("d", "e"))] == ["D", "E"]

    at_work(story, gated=True, room=3)


def test_a_text_that_never_fits_is_told_so() -> None:
    async def story(gatherer: Batcher, recorder: Recorder) -> None:
        with pytest.raises(
            ApiError, match="The text has 4 sentences, more than 3 at once"
        ) as error:
            await gatherer.translate(items(*"abcd"))
        assert error.value.status == 413

    at_work(story, room=3)


def test_who_leaves_takes_their_sentences_along() -> None:
    async def story(gatherer: Batcher, recorder: Recorder) -> None:
        first = asyncio.create_task(gatherer.translate(items("a")))
        await turns()
        leaving = asyncio.create_task(gatherer.translate(items("b", "c")))
        staying = asyncio.create_task(gatherer.translate(items("d")))
        await turns()
        leaving.cancel()
        await turns()
        assert gatherer.waiting == 1
        recorder.gate.set()
        await asyncio.gather(first, staying)
        assert recorder.batches == [["a"], ["d"]]

    at_work(story, gated=True)


def test_a_bad_sentence_spoils_only_its_own_request() -> None:
    async def story(gatherer: Batcher, recorder: Recorder) -> None:
        found = await asyncio.gather(
            gatherer.translate(items("bad", "a", "bad too", "b", "c", "d")),
            gatherer.translate(items("fine")),
            return_exceptions=True,
        )
        assert isinstance(found[0], ValueError)
        assert [one.text for one in found[1]] == ["FINE"]
        assert gatherer.waiting == 0

    at_work(story)


def test_those_who_wait_hear_of_a_failure() -> None:
    async def broken(batch: Sequence[Item]) -> list[Found]:
        raise RuntimeError("no model")

    async def story(gatherer: Batcher, recorder: Recorder) -> None:
        with pytest.raises(RuntimeError, match="no model"):
            await gatherer.translate(items("a"))

    at_work(story, run=broken)


def test_nothing_is_translated_at_once() -> None:
    async def story(gatherer: Batcher, recorder: Recorder) -> None:
        assert await gatherer.translate([]) == []
        assert recorder.batches == []

    at_work(story)
