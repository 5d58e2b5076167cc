from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.base.errors import RegardError
from regard.corpora.parallel import SentencePair, read_parallel
from regard.models.build import build_translator
from regard.tasks.translation.evaluation import align, evaluate
from regard.tasks.translation.model import LoadedTranslator


@pytest.fixture(scope="module")
def model(toy_run: Path) -> LoadedTranslator:
    loaded: LoadedTranslator = regard.load(toy_run)
    return loaded


@pytest.fixture(scope="module")
def pairs(toy_corpus: Path) -> list[SentencePair]:
    """Test pairs with their gold alignment: word by word."""
    plain = read_parallel(toy_corpus / "test.src", toy_corpus / "test.tgt")
    return [
        SentencePair(p.source, p.target, tuple((i, i) for i in range(len(p.source.split()))))
        for p in plain
    ]


@pytest.fixture(scope="module")
def plain_model(model: LoadedTranslator) -> LoadedTranslator:
    """A translator without attention, which has learned nothing."""
    settings = model.recipe.model.model_copy(update={"attention": "none"})
    sizes = {"source_vocab": model.source_tokenizer.size,
             "target_vocab": model.target_tokenizer.size}  # fmt: skip
    return LoadedTranslator(
        model=build_translator(settings, **sizes),
        source_tokenizer=model.source_tokenizer,
        target_tokenizer=model.target_tokenizer,
        recipe=model.recipe.model_copy(update={"model": settings}),
    )


def test_a_good_model_scores_well(model: LoadedTranslator, pairs: list[SentencePair]) -> None:
    found = evaluate(model, pairs, bands=[(1, 4), (5, 9)])
    assert found.bleu.value > 50
    assert found.chrf.value > 50
    assert sum(band.sentences for band in found.bands) == len(pairs)
    assert found.alignment is not None
    assert found.alignment.value < 30
    plain = found.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["bleu"]["signature"]


def test_without_gold_or_attention_there_is_no_alignment_score(
    model: LoadedTranslator, plain_model: LoadedTranslator, pairs: list[SentencePair]
) -> None:
    bare = [SentencePair(pair.source, pair.target) for pair in pairs[:4]]
    assert evaluate(model, bare).alignment is None
    assert evaluate(plain_model, pairs[:4], beam=1).to_dict()["alignment_error_rate"] is None


def test_aligning_what_the_model_says_gives_the_attention_of_its_search(
    model: LoadedTranslator, pairs: list[SentencePair]
) -> None:
    translations = model.translate([pair.source for pair in pairs])
    maps = align(model, [SentencePair(t.source, t.text) for t in translations])
    for found, translation in zip(maps, translations, strict=True):
        assert translation.attention is not None
        assert found.target == translation.attention.target
        np.testing.assert_allclose(found.weights, translation.attention.weights, atol=1e-4)


def test_a_model_without_attention_cannot_align(plain_model: LoadedTranslator) -> None:
    with pytest.raises(RegardError, match="no attention to align by"):
        align(plain_model, [SentencePair("badal", "LADAB")])


def test_a_test_shows_itself_in_a_notebook(
    model: LoadedTranslator, pairs: list[SentencePair]
) -> None:
    shown = evaluate(model, pairs[:5])._repr_html_()
    for part in ("BLEU", "chrF", "AER", "tok:13a", "words in the source sentence"):
        assert part in shown
