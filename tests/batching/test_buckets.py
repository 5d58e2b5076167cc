from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.batching.batch import by_length, cut, sorted_batches

LENGTHS = st.lists(
    st.tuples(st.integers(min_value=1, max_value=40), st.integers(min_value=1, max_value=40)),
    max_size=60,
)


def test_by_length_turns_at_each_length() -> None:
    lengths = np.array([[5, 5], [3, 4], [4, 2], [4, 4], [5, 1], [1, 5]])
    assert lengths[by_length(lengths)].tolist() == [
        [3, 4], [4, 4], [4, 2], [5, 1], [5, 5], [1, 5],
    ]  # fmt: skip


def test_ties_keep_their_order() -> None:
    assert by_length(np.array([[2, 2], [1, 1], [2, 2], [1, 1]])).tolist() == [1, 3, 0, 2]


@settings(deadline=None, max_examples=100)
@given(LENGTHS, st.integers(min_value=1, max_value=300))
def test_sorted_batches(lengths: list[tuple[int, int]], token_budget: int) -> None:
    batches = sorted_batches(lengths, token_budget=token_budget)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    longest = [max(max(lengths[index]) for index in batch) for batch in batches]
    assert longest == sorted(longest, reverse=True)
    for batch in batches:
        sources, targets = zip(*(lengths[index] for index in batch), strict=True)
        assert len(batch) == 1 or len(batch) * (max(sources) + max(targets)) <= token_budget


def test_too_long_an_example_stands_alone() -> None:
    lengths = np.array([[1, 1], [1, 1], [50, 50], [1, 1]])
    assert cut(np.arange(4), lengths, token_budget=10) == [[0, 1], [2], [3]]
