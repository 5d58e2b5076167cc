from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from regard.base.errors import RegardError
from regard.scoring.alignment import (
    alignment_error_rate,
    best_links,
    format_links,
    parse_gold,
    parse_links,
)
from regard.tasks.attention import merge_to_words

a_link = st.tuples(st.integers(0, 6), st.integers(0, 6))
some_links = st.frozensets(a_link, max_size=8)


def test_pieces_are_summed_over_the_source_and_averaged_over_the_target():
    weights = np.array(
        [
            [0.1, 0.2, 0.6, 0.1],  # first piece of target word 0
            [0.3, 0.4, 0.2, 0.1],  # second piece of target word 0
            [0.0, 0.1, 0.7, 0.2],  # target word 1
            [0.0, 0.0, 0.1, 0.9],  # end mark
        ]
    )
    merged = merge_to_words(weights, source_words=[0, 0, 1, -1], target_words=[0, 0, 1, -1])
    np.testing.assert_allclose(merged, [[0.5, 0.4], [0.1, 0.7]])


def test_merging_keeps_the_float_type():
    weights = np.ones((2, 2), dtype=np.float32)
    merged = merge_to_words(weights, source_words=[0, 1], target_words=[0, 0])
    assert merged.dtype == np.float32


def test_a_word_without_a_piece_gets_no_weight():
    merged = merge_to_words(np.ones((1, 1)), source_words=[2], target_words=[1])
    assert merged.tolist() == [[0, 0, 0], [0, 0, 1]]


def test_nothing_but_end_marks_merges_to_nothing():
    merged = merge_to_words(np.ones((1, 1)), source_words=[-1], target_words=[-1])
    assert merged.shape == (0, 0)
    assert best_links(merged) == frozenset()


def test_merging_refuses_labels_that_do_not_fit():
    with pytest.raises(RegardError, match=r"shape \(2, 3\) do not fit 2 target pieces and 1 sourc"):
        merge_to_words(np.ones((2, 3)), source_words=[0], target_words=[0, 1])


@settings(deadline=None, max_examples=50)
@given(data=st.data(), target=st.integers(1, 7), source=st.integers(1, 7))
def test_merged_rows_still_sum_to_one(data, target, source):
    drawn = data.draw(arrays(np.float64, (target, source), elements=st.floats(0.01, 1)))
    weights = drawn / drawn.sum(axis=1, keepdims=True)
    words = {
        side: sorted(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
        for side, size in {"source": source, "target": target}.items()
    }
    merged = merge_to_words(weights, source_words=words["source"], target_words=words["target"])
    np.testing.assert_allclose(merged[sorted(set(words["target"]))].sum(axis=1), 1)


def test_best_link_is_the_most_attended_source_word():
    weights = np.array([[0.1, 0.9], [0.6, 0.4], [0.5, 0.5], [0.0, 0.0]])
    assert best_links(weights) == {(1, 0), (0, 1), (0, 2)}


@pytest.mark.parametrize(
    ("hypothesis", "sure", "possible", "expected"),
    [
        pytest.param([{(0, 0)}], [{(0, 0)}], None, 0.0, id="perfect"),
        pytest.param([{(0, 0)}], [{(1, 1)}], None, 100.0, id="all wrong"),
        pytest.param([{(0, 0)}], [set()], [{(0, 0)}], 0.0, id="only possible"),
        pytest.param([set()], [{(0, 0)}], None, 100.0, id="empty hypothesis"),
        pytest.param([set()], [set()], None, 0.0, id="nothing to align"),
        # 1 - (1 + 2) / (3 + 2)
        pytest.param([{(0, 0), (1, 1), (2, 2)}], [{(0, 0), (3, 3)}], [{(1, 1)}], 40.0, id="mixed"),
        # counts are summed first: 1 - (1 + 1) / (3 + 2), not the mean of 0 % and 100 %
        pytest.param([{(0, 0)}, {(0, 0), (1, 0)}], [{(0, 0)}, {(5, 5)}], None, 60.0, id="corpus"),
    ],
)
def test_error_rate(hypothesis, sure, possible, expected):
    assert alignment_error_rate(hypothesis, sure, possible).value == pytest.approx(expected)


def test_error_rate_carries_its_evidence():
    score = alignment_error_rate([{(0, 0), (1, 1), (2, 2)}], [{(0, 0), (3, 3)}], [{(1, 1)}])
    assert score.name == "AER"
    assert score.signature == "gold:sure+possible|sum:corpus"
    assert score.detail["precision"] == pytest.approx(200 / 3)
    assert score.detail["recall"] == pytest.approx(50)
    assert (score.detail["links"], score.detail["sure_links"]) == (3, 2)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(some_links, some_links, some_links), min_size=1, max_size=4))
def test_error_rate_is_a_percentage_and_zero_for_the_gold_itself(sentences):
    hypothesis, sure, possible = (list(column) for column in zip(*sentences, strict=True))
    assert 0 <= alignment_error_rate(hypothesis, sure, possible).value <= 100
    assert alignment_error_rate(sure, sure, possible).value == 0


def test_error_rate_refuses_unequal_counts():
    with pytest.raises(RegardError, match=r"of 2 sentences .* of 1 \(sure\) and 1 \(possible\)"):
        alignment_error_rate([{(0, 0)}] * 2, [{(0, 0)}])


def test_error_rate_refuses_nothing():
    with pytest.raises(RegardError, match="nothing to compare"):
        alignment_error_rate([], [])


def test_gold_counts_from_one_and_tells_sure_from_possible():
    gold = parse_gold("1-1 2p3")
    assert gold.sure == {(0, 0)}
    assert gold.possible == {(0, 0), (1, 2)}


@pytest.mark.parametrize("item", ["3x4", "3-", "-1-2", "1-2-3", "a-b", "²-1"])
def test_gold_refuses_what_is_not_a_link(item):
    with pytest.raises(RegardError, match=f"'{item}' is not an alignment link. Expected i-j"):
        parse_gold(f"1-1 {item}")


def test_gold_refuses_a_word_before_the_first():
    with pytest.raises(RegardError, match="'0-1' lies before the first word, 1"):
        parse_gold("0-1")


def test_hypotheses_may_not_be_merely_possible():
    with pytest.raises(RegardError, match="Only gold may"):
        parse_links("0-0 1p1")


@settings(deadline=None, max_examples=50)
@given(some_links)
def test_links_survive_the_round_trip(links):
    assert parse_links(format_links(links)) == links


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("pair", "published_error", "published_precision", "published_recall", "links"),
    [("enfr", 8.0, 91.4, 92.9, 6069), ("roen", 28.7, 82.7, 62.6, 4692)],
)
def test_published_error_rates(
    real_data: Path, pair, published_error, published_precision, published_recall, links
):
    folder = real_data / "alignments"
    gold = [parse_gold(line) for line in (folder / f"{pair}.gold").read_text().splitlines()]
    giza = [parse_links(line) for line in (folder / f"giza.{pair}.talp").read_text().splitlines()]
    score = alignment_error_rate(
        giza, [line.sure for line in gold], [line.possible for line in gold]
    )
    assert round(score.value, 1) == published_error
    assert round(score.detail["precision"], 1) == published_precision
    assert round(score.detail["recall"], 1) == published_recall
    assert score.detail["links"] == links
