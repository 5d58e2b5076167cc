from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError, SettingsError
from regard.scoring.alignment import METHODS, symmetrise, symmetrise_all

a_link = st.tuples(st.integers(0, 6), st.integers(0, 6))
some_links = st.frozensets(a_link, max_size=10)

Links = set[tuple[int, int]]

# name: forward, backward, {method: links}
CASES: dict[str, tuple[Links, Links, dict[str, Links]]] = {
    "both agree": (
        {(0, 0), (1, 1)},
        {(0, 0), (1, 1)},
        {key: {(0, 0), (1, 1)} for key in METHODS},
    ),
    "nothing": (set(), set(), {key: set() for key in METHODS}),
    "a neighbour that gives a word its first link is added": (
        {(0, 0), (1, 0)},
        {(0, 0)},
        {
            "intersection": {(0, 0)},
            "union": {(0, 0), (1, 0)},
            "grow-diag": {(0, 0), (1, 0)},
            "grow-diag-final": {(0, 0), (1, 0)},
            "grow-diag-final-and": {(0, 0), (1, 0)},
        },
    ),
    "a neighbour across the corner is one too": (
        {(0, 0), (1, 1)},
        {(0, 0)},
        {"grow-diag": {(0, 0), (1, 1)}},
    ),
    "what was added has neighbours of its own": (
        {(0, 0), (1, 1), (2, 2)},
        {(0, 0)},
        {"grow-diag": {(0, 0), (1, 1), (2, 2)}},
    ),
    "a neighbour whose words both have links is left out": (
        {(0, 0), (1, 1), (0, 1)},
        {(0, 0), (1, 1)},
        {key: {(0, 0), (1, 1)} for key in set(METHODS) - {"union"}},
    ),
    "far away, and both words are new": (
        {(0, 0), (4, 5)},
        {(0, 0)},
        {
            "grow-diag": {(0, 0)},
            "grow-diag-final": {(0, 0), (4, 5)},
            "grow-diag-final-and": {(0, 0), (4, 5)},
        },
    ),
    "far away, and one word is new": (
        {(0, 0), (0, 5)},
        {(0, 0)},
        {
            "grow-diag": {(0, 0)},
            "grow-diag-final": {(0, 0), (0, 5)},
            "grow-diag-final-and": {(0, 0)},
        },
    ),
    "the first direction comes first": (
        {(0, 3)},
        {(0, 5)},
        {"grow-diag-final-and": {(0, 3)}, "grow-diag-final": {(0, 3), (0, 5)}},
    ),
}


@pytest.mark.parametrize(
    ("case", "method"),
    [(case, method) for case, (_, _, wanted) in CASES.items() for method in sorted(wanted)],
)
def test_by_hand(case: str, method: str) -> None:
    forward, backward, wanted = CASES[case]
    assert symmetrise(forward, backward, method=method) == wanted[method]


@given(forward=some_links, backward=some_links)
@settings(deadline=None, max_examples=60)
def test_each_method_lies_between_intersection_and_union(
    forward: frozenset[tuple[int, int]], backward: frozenset[tuple[int, int]]
) -> None:
    found = {method: symmetrise(forward, backward, method=method) for method in METHODS}
    assert found["intersection"] <= found["grow-diag"] <= found["grow-diag-final-and"]
    assert found["grow-diag-final-and"] <= found["union"]
    assert found["grow-diag"] <= found["grow-diag-final"] <= found["union"]
    # In the end every word that either direction has linked has a link.
    for side in (0, 1):
        linked = {link[side] for link in found["grow-diag-final"]}
        assert linked == {link[side] for link in found["union"]}


@given(forward=some_links)
@settings(deadline=None, max_examples=30)
def test_an_alignment_and_itself_are_itself(forward: frozenset[tuple[int, int]]) -> None:
    for method in METHODS:
        assert symmetrise(forward, forward, method=method) == forward


def test_mistakes_are_named() -> None:
    with pytest.raises(SettingsError, match=r"unknown way .* 'grow'\. .* intersection, un"):
        symmetrise(set(), set(), method="grow")
    with pytest.raises(RegardError, match="of 1 sentences cannot be joined with those of 2"):
        symmetrise_all([set()], [set(), set()])
    assert symmetrise_all([{(0, 0)}], [{(0, 0), (1, 1)}]) == [{(0, 0), (1, 1)}]
