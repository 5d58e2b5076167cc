from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError, SettingsError
from regard.scoring.bleu import bleu_by_length, corpus_bleu, default_bands


def words(count: int) -> str:
    return " ".join("abcdefghij"[index % 10] for index in range(count))


def test_each_band_is_scored_like_a_corpus_of_its_own():
    source = [words(3), words(12), words(4), words(15)]
    system = [words(3), "x y z", words(4), words(15)]
    bands = bleu_by_length(system, source, source, bands=[(1, 10), (11, 20), (21, 30)])
    assert [(band.low, band.high, band.sentences) for band in bands] == [
        (1, 10, 2),
        (11, 20, 2),
        (21, 30, 0),
    ]
    assert bands[0].score.value == 100.0
    expected = corpus_bleu(["x y z", words(15)], [words(12), words(15)])
    assert bands[1].score.value == pytest.approx(expected.value)
    assert bands[2].score is None


def test_words_are_those_of_the_source():
    bands = bleu_by_length(["a b c d e"], ["a b c d e"], ["  one\ttwo  "], bands=[(2, 2), (5, 5)])
    assert [band.sentences for band in bands] == [1, 0]


def test_a_band_without_four_grams_can_still_be_perfect():
    (band,) = bleu_by_length(["ja"], ["ja"], ["yes"])
    assert band.score.value == 100.0
    assert "eff:yes" in band.score.signature


def test_options_reach_the_score():
    (band,) = bleu_by_length(["JA"], ["ja"], ["yes"], tokenize="char", lowercase=True)
    assert "case:lc" in band.score.signature
    assert "tok:char" in band.score.signature


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        pytest.param(range(1, 61), [(low, low + 9) for low in range(1, 60, 10)], id="to 60"),
        pytest.param(range(3, 13), [(1, 4), (5, 6), (7, 8), (9, 10), (11, 12)], id="to 12"),
        pytest.param([5, 6, 50], [(1, 10), (11, 50)], id="hole"),
        pytest.param([7], [(1, 7)], id="one sentence"),
        pytest.param([0, 1, 2], [(0, 1), (2, 2)], id="empty source line"),
        pytest.param([0], [(0, 1)], id="nothing but an empty line"),
        pytest.param([2] * 300 + [4], [(1, 4)], id="too few long ones"),
        pytest.param([10, 900], [(1, 200), (201, 1000)], id="very long"),
    ],
)
def test_default_bands(lengths, expected):
    assert default_bands(list(lengths)) == expected


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=40))
def test_default_bands_hold_every_sentence_once_and_none_is_empty(lengths):
    bands = default_bands(lengths)
    assert 1 <= len(bands) <= 8
    for length in lengths:
        assert sum(low <= length <= high for low, high in bands) == 1
    for low, high in bands:
        assert any(low <= length <= high for length in lengths)


def test_labels_and_json():
    bands = bleu_by_length(["a"], ["a"], ["a"], bands=[(1, 1), (2, 9)])
    assert [band.label for band in bands] == ["1", "2–9"]
    as_json = json.loads(json.dumps([band.to_dict() for band in bands]))
    assert as_json[0]["score"]["name"] == "BLEU"
    assert as_json[1] == {"low": 2, "high": 9, "sentences": 0, "score": None}


def test_unequal_counts_are_named():
    with pytest.raises(RegardError, match="2 source sentences do not match 1 system outputs"):
        bleu_by_length(["a"], ["a"], ["a", "b"])
    with pytest.raises(RegardError, match="1 system outputs cannot be scored against 2 references"):
        bleu_by_length(["a"], ["a", "b"], ["a"])


def test_a_band_that_ends_before_it_begins_is_refused():
    with pytest.raises(SettingsError, match=r"length band \(5, 3\) is empty"):
        bleu_by_length(["a"], ["a"], ["a"], bands=[(5, 3)])
