"""Batches of a model worker: an error in one sentence affects no other."""

from __future__ import annotations

from pathlib import Path

from regard.serving.batcher import QueuedSentence, TranslationOptions
from regard.serving.errors import ApiError
from regard.serving.worker import translate_batch
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
        "A sentence cannot be translated: has 6000 words, more than the 5000 tokens that one "
        "sentence may have."
    )


def test_a_batch_may_have_nothing_that_can_be_translated(toy_run: Path) -> None:
    sentence = QueuedSentence("a " * 6_000, 1, TranslationOptions())
    outcomes = translate_batch(load(toy_run), [sentence, sentence])
    assert all(isinstance(outcome, ApiError) for outcome in outcomes)
