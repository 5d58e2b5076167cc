"""Batches of a model worker: an error in one sentence affects no other."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from regard.serving.batcher import QueuedSentence, TranslationOptions
from regard.serving.errors import ApiError
from regard.serving.worker import ModelThread, translate_batch
from regard.tasks.translation.model import load
from regard.tasks.translation.results import Translation


def test_a_batch_has_an_outcome_for_every_sentence(toy_run: Path) -> None:
    texts = ["badal kofen", "a " * 6_000, "migon", "kofen"]
    options = [
        TranslationOptions(),
        TranslationOptions(),
        TranslationOptions(n_best=3),
        TranslationOptions(attention=True),
    ]
    batch = [QueuedSentence(text, 1, each) for text, each in zip(texts, options, strict=True)]
    first, long, several, seen = translate_batch(load(toy_run), batch)
    assert isinstance(first, Translation)
    assert isinstance(several, Translation)
    assert isinstance(seen, Translation)
    assert isinstance(long, ApiError)
    assert (first.text, first.attention, first.alternatives) == ("LADAB NEFOK", None, ())
    assert (several.text, len(several.alternatives)) == ("NOGIM", 2)
    assert seen.attention is not None
    assert long.problem == (
        "A sentence cannot be translated: has 6000 words, more than the 2000 tokens that one "
        "sentence may have."
    )


def test_a_batch_may_have_nothing_that_can_be_translated(toy_run: Path) -> None:
    sentence = QueuedSentence("a " * 6_000, 1, TranslationOptions())
    outcomes = translate_batch(load(toy_run), [sentence, sentence])
    assert all(isinstance(outcome, ApiError) for outcome in outcomes)


def test_batches_and_views_take_turns() -> None:
    """A batch that comes behind many views waits for one of them only, and the reverse."""
    order: list[str] = []
    gate = threading.Event()

    async def scene() -> None:
        thread = ModelThread("model")
        first = asyncio.create_task(thread.run("view", lambda: gate.wait(20)))
        await asyncio.sleep(0)
        names = [f"view {n}" for n in range(4)] + [f"batch {n}" for n in range(2)]
        others = [
            asyncio.create_task(
                thread.run("batch" if "batch" in name else "view", lambda n=name: order.append(n))  # type: ignore[misc]
            )
            for name in names
        ]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, *others)
        thread.shutdown()

    asyncio.run(scene())
    assert order == ["batch 0", "view 0", "batch 1", "view 1", "view 2", "view 3"]


def test_a_cancelled_turn_is_passed_on() -> None:
    gate = threading.Event()

    async def scene() -> str:
        thread = ModelThread("model")
        first = asyncio.create_task(thread.run("view", lambda: gate.wait(20)))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(thread.run("view", lambda: None)) for _ in range(3)]
        last = asyncio.create_task(thread.run("batch", lambda: "done"))
        await asyncio.sleep(0)
        for task in (*waiting, first):
            task.cancel()
        await asyncio.sleep(0)
        gate.set()
        found = await asyncio.wait_for(last, 10)
        thread.shutdown()
        return found

    assert asyncio.run(scene()) == "done"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, MemoryError])
def test_the_thread_survives_whatever_is_raised_in_it(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    async def scene() -> str:
        thread = ModelThread("model")
        with pytest.raises((RuntimeError, MemoryError)):
            await thread.run("batch", fail)
        found = await thread.run("batch", lambda: "done")
        thread.shutdown()
        return found

    assert asyncio.run(scene()) == "done"
