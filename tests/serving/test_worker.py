"""A model's batches: what is wrong with one sentence is said of that one alone."""

from __future__ import annotations

from pathlib import Path

from regard.serving.batcher import Item, Manner
from regard.serving.errors import ApiError
from regard.serving.worker import translate_batch
from regard.tasks.translation.model import load
from regard.tasks.translation.results import Translation


def test_a_batch_has_a_result_for_every_item(toy_run: Path) -> None:
    texts = ["badal kofen", "a " * 6_000, "migon", "kofen"]
    manners = [Manner(), Manner(), Manner(n_best=3), Manner(attention=True)]
    items = [Item(text, 1, manner) for text, manner in zip(texts, manners, strict=True)]
    first, long, several, seen = translate_batch(load(toy_run), items)
    assert isinstance(first, Translation)
    assert isinstance(several, Translation)
    assert isinstance(seen, Translation)
    assert isinstance(long, ApiError)
    assert (first.text, first.attention, first.alternatives) == ("LADAB NEFOK", None, ())
    assert (several.text, len(several.alternatives)) == ("NOGIM", 2)
    assert seen.attention is not None
    assert long.problem == (
        "A sentence cannot be translated: has 6000 words, more than the 5000 symbols that one "
        "sentence may have."
    )


def test_a_batch_may_have_nothing_that_can_be_translated(toy_run: Path) -> None:
    found = translate_batch(load(toy_run), [Item("a " * 6_000, 1, Manner())] * 2)
    assert all(isinstance(result, ApiError) for result in found)
