from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.vocabulary import visible, words_of_surfaces


@pytest.mark.parametrize(
    ("surfaces", "words"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(["the", " cat"], [0, 1], id="two words"),
        pytest.param(["Stra", "ße", ",", " weil"], [0, 0, 0, 1], id="glued pieces"),
        pytest.param(["a", " ", "b"], [0, 1, 1], id="whitespace belongs to the next word"),
        pytest.param(["a", " "], [0, 0], id="whitespace at the end belongs to the last word"),
        pytest.param([" ", " "], [0, 0], id="whitespace alone"),
        pytest.param(["a", "", "", " b"], [0, 0, 0, 1], id="empty inside a word"),
        pytest.param(["", "a", ""], [0, 0, 0], id="special tokens around a word"),
        pytest.param(["a b", " c"], [0, 2], id="a piece of two words counts to the first"),
    ],
)
def test_words(surfaces: list[str], words: list[int]) -> None:
    assert words_of_surfaces(surfaces) == words


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(alphabet="ab \t\n", max_size=4)))
def test_words_are_those_of_split(surfaces: list[str]) -> None:
    words = words_of_surfaces(surfaces)
    text = "".join(surfaces)
    assert words == sorted(words)
    assert all(0 <= word < max(1, len(text.split())) for word in words)
    letters = "".join(letter for surface in surfaces for letter in surface if not letter.isspace())
    assert letters == "".join(text.split())


def test_whitespace_is_made_visible() -> None:
    assert visible("a b\t\n\r\u00a0") == "a␣b⇥⏎␍⍽"
