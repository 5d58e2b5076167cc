from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.scoring.measures import edit_distance, sequence_error_rate, token_error_rate

WORDS = st.text(alphabet="abc", max_size=6)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("kitten", "sitting", 3),
        ("ab", "ba", 2),
        ("abc", "xabc", 1),
    ],
)
def test_distances(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == distance


@settings(deadline=None)
@given(first=WORDS, second=WORDS, third=WORDS)
def test_the_distance_is_a_metric(first: str, second: str, third: str) -> None:
    distance = edit_distance(first, second)
    assert distance == edit_distance(second, first)
    assert (distance == 0) == (first == second)
    assert abs(len(first) - len(second)) <= distance <= max(len(first), len(second))
    assert distance <= edit_distance(first, third) + edit_distance(third, second)


def test_tokens_are_compared_with_the_nearest_reference() -> None:
    score = token_error_rate(["abc", "xy"], [["abd", "abc"], ["abcd", "xyz"]], name="PER")
    assert score.detail == {"edits": 1, "tokens": 6, "sequences": 2}
    assert score.value == pytest.approx(100 / 6)
    assert str(score).startswith("PER = 16.67")


def test_any_reference_makes_a_sequence_right() -> None:
    score = sequence_error_rate([["A", "B"], ["C"]], [[["X"], ["A", "B"]], [["C", "C"]]])
    assert score.value == 50.0
    assert score.detail == {"wrong": 1, "sequences": 2}


def test_empty_references_of_nothing_are_no_error() -> None:
    assert token_error_rate([""], [[""]]).value == 0.0


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [], "nothing to score"),
        (["a"], [["a"], ["b"]], "1 hypotheses cannot be compared with 2 references"),
        (["a", "b"], [["a"], []], "hypothesis 2 has no reference"),
    ],
)
def test_what_cannot_be_scored_is_named(
    hypotheses: list[str], references: list[list[str]], message: str
) -> None:
    for measure in (token_error_rate, sequence_error_rate):
        with pytest.raises(RegardError, match=message):
            measure(hypotheses, references)
