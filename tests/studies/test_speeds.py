from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.studies.compare import speed_ratio, spread_sample


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text("ab ", max_size=12), min_size=1, max_size=40), st.integers(1, 50))
def test_a_sample_is_as_large_as_it_can_be_and_from_short_to_long(sources, count):
    sample = spread_sample(sources, count)
    lengths = [len(sentence.split()) for sentence in sample]
    assert len(sample) == min(count, len(sources))
    assert lengths == sorted(lengths)
    assert all(sources.count(sentence) >= sample.count(sentence) for sentence in sample)
    assert lengths[0] == min(len(sentence.split()) for sentence in sources)


def test_a_slow_round_of_both_does_not_change_the_ratio():
    assert speed_ratio([20.0, 2.0, 22.0], [10.0, 1.0, 10.0]) == pytest.approx(2.0)
