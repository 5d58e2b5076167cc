from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.corpora.parallel import SentencePair
from regard.scoring.alignment import alignment_error_rate
from regard.tasks.translation.evaluation import align, align_both, score_heads
from regard.tasks.translation.model import LoadedTranslator, load


@pytest.fixture(scope="module")
def translator(random_transformer_run: Path) -> LoadedTranslator:
    return load(random_transformer_run)


@pytest.fixture(scope="module")
def pairs(toy_corpus: Path) -> list[SentencePair]:
    """Pairs with gold: each word of the invented language has its translation at its place."""
    sides = [(toy_corpus / f"test.{x}").read_text("utf-8").splitlines() for x in ("src", "tgt")]
    return [
        SentencePair(source, target, tuple((i, i) for i in range(len(source.split()))))
        for source, target in zip(*sides, strict=True)
    ][:8]


def test_heads_are_in_the_order_of_their_error(
    translator: LoadedTranslator, pairs: list[SentencePair]
) -> None:
    scores = score_heads(translator, pairs)
    assert {score.place for score in scores} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    errors = [score.error.value for score in scores]
    assert errors == sorted(errors)
    gold = [pair.alignment or () for pair in pairs]
    for score in scores:
        links = [shown.links() for shown in align(translator, pairs, head=score.place)]
        assert alignment_error_rate(links, gold).value == pytest.approx(score.error.value)


def test_without_gold_no_head_is_best(translator: LoadedTranslator) -> None:
    with pytest.raises(RegardError, match="no gold alignments to choose a head by"):
        score_heads(translator, [SentencePair("bafen", "NEFAB")])


def test_two_directions_are_joined(translator: LoadedTranslator, pairs: list[SentencePair]) -> None:
    turned = [SentencePair(pair.target, pair.source) for pair in pairs]
    there = [shown.links() for shown in align(translator, pairs)]
    back = [shown.links() for shown in align(translator, turned)]
    agreed = align_both(translator, translator, pairs, method="intersection")
    for links, one, other in zip(agreed, there, back, strict=True):
        assert links == one & {(source, target) for target, source in other}
    one_head = align_both(translator, translator, pairs, method="union", heads=((0, 0), (1, 1)))
    assert all(links for links in one_head)
