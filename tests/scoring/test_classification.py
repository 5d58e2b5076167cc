from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.scoring.measures import score_labels

PAIRS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30)


def test_a_score_by_hand() -> None:
    score = score_labels([0, 0, 1, 1], [0, 1, 1, 1], labels=["a", "b", "never"])
    assert score.confusion.tolist() == [[1, 0, 0], [1, 2, 0], [0, 0, 0]]
    assert (score.accuracy, score.examples) == (0.75, 4)
    assert score.macro_f1 == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert score.to_dict()["labels"] == ["a", "b", "never"]


def test_each_label_has_a_score_of_its_own() -> None:
    score = score_labels([0, 0, 1, 1], [0, 1, 1, 1], labels=["a", "b", "never"])
    a, b, never = score.by_label()
    assert (a.label, a.examples, a.precision, a.recall) == ("a", 1, 50.0, 100.0)
    assert a.f1 == pytest.approx(200 / 3)
    assert "<b>accuracy 75.0%, macro-F1 0.733</b> of 4 examples" in score._repr_html_()
    assert (b.precision, b.recall) == (100.0, pytest.approx(200 / 3))
    assert (never.examples, never.precision, never.recall, never.f1) == (0, None, None, None)


def test_nothing_to_score() -> None:
    score = score_labels([], [], labels=["a", "b"])
    assert (score.accuracy, score.macro_f1) == (0.0, 0.0)


@settings(deadline=None, max_examples=30)
@given(PAIRS)
def test_it_equals_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    predicted, expected = ([pair[side] for pair in pairs] for side in (0, 1))
    score = score_labels(predicted, expected, labels=["a", "b", "c"])
    assert score.accuracy == pytest.approx(metrics.accuracy_score(expected, predicted))
    theirs = metrics.f1_score(expected, predicted, average="macro", zero_division=0.0)
    assert score.macro_f1 == pytest.approx(theirs)
