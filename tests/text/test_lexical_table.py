from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.lexical_table import learn_lexical_table

some_ids = st.lists(st.integers(0, 5), min_size=1, max_size=4)


def test_a_word_that_comes_with_another_is_its_translation() -> None:
    # Token n is translated by n + 4, in any order, and 0 only ever comes with others.
    pairs = [([0, 1], [5, 4]), ([0, 2], [4, 6]), ([1, 2], [5, 6]), ([3, 0], [4, 7])]
    table = learn_lexical_table(pairs, source_size=4, target_size=8, rounds=20)
    for token in range(4):
        assert table.best(token, 1) == [token + 4]


def test_brown_et_al_by_hand() -> None:
    # One round from equal chances: t(f|e) is e's share of the sentences' f.
    table = learn_lexical_table(
        [([0, 1], [0, 1]), ([0], [0])], source_size=2, target_size=2, rounds=1
    )
    found = {
        (source, int(target)): float(chance)
        for source in range(2)
        for target, chance in zip(
            table.targets[table.begins[source] : table.begins[source + 1]],
            table.probabilities[table.begins[source] : table.begins[source + 1]],
            strict=True,
        )
    }
    assert found == pytest.approx({(0, 0): 0.75, (0, 1): 0.25, (1, 0): 0.5, (1, 1): 0.5})


@given(pairs=st.lists(st.tuples(some_ids, some_ids), min_size=1, max_size=8))
@settings(deadline=None, max_examples=40)
def test_chances_sum_to_one_and_fall(pairs: list[tuple[list[int], list[int]]]) -> None:
    table = learn_lexical_table(pairs, source_size=6, target_size=6)
    seen = {token for source, _ in pairs for token in source}
    for token in range(6):
        chances = table.probabilities[table.begins[token] : table.begins[token + 1]]
        assert len(chances) == len(set(table.best(token, 6)))
        if token in seen:
            assert chances.sum() == pytest.approx(1)
            assert np.all(np.diff(chances) <= 0)
        else:
            assert len(chances) == 0


def test_without_pairs_it_is_empty() -> None:
    table = learn_lexical_table([], source_size=3, target_size=3)
    assert table.best(2, 5) == []
