from __future__ import annotations

import pytest

from regard.base.errors import SettingsError
from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.text.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, ("b", "a", "c", "d"), id="most frequent first, ties by token"),
        pytest.param({"min_count": 2}, ("b", "a", "c"), id="rare tokens left out"),
        pytest.param({"size": 6}, ("b", "a"), id="size counts the special tokens"),
        pytest.param({"size": 6, "always": ("d",)}, ("d", "b"), id="some kept always"),
        pytest.param({"size": 100}, ("b", "a", "c", "d"), id="size larger than the data"),
        pytest.param({"always": ("x", "a")}, ("x", "a", "b", "c", "d"), id="always but never seen"),
    ],
)
def test_order_of_tokens(options: dict[str, object], expected: tuple[str, ...]) -> None:
    counts = {"d": 1, "c": 2, "a": 2, "b": 5}
    assert Vocabulary.from_counts(counts, **options).tokens == expected  # type: ignore[arg-type]


def test_ids_follow_the_special_tokens() -> None:
    vocabulary = Vocabulary(["x", "y"])
    assert len(vocabulary) == 6
    assert [vocabulary.token_of(number) for number in range(6)] == [*SPECIALS, "x", "y"]
    assert (vocabulary.id_of("x"), vocabulary.id_of("y")) == (4, 5)
    assert vocabulary.id_of("z") == UNKNOWN
    assert "x" in vocabulary and "z" not in vocabulary


def test_no_text_is_read_as_a_special_token() -> None:
    vocabulary = Vocabulary(["x", "</s>"])
    assert vocabulary.id_of("<pad>") == UNKNOWN
    assert vocabulary.id_of("</s>") == 5


def test_too_small_a_size_names_the_least() -> None:
    with pytest.raises(SettingsError, match=r"of 4 entries .* must be at least 5"):
        Vocabulary.from_counts({"a": 1}, size=4)
    with pytest.raises(SettingsError, match="must be at least 7"):
        Vocabulary.from_counts({"a": 1}, size=6, always=("x", "y"))


def test_nothing_frequent_enough() -> None:
    with pytest.raises(SettingsError, match=r"no text to learn .* no token occurs 3 or more times"):
        Vocabulary.from_counts({"a": 2}, min_count=3)


def test_tokens_are_distinct() -> None:
    with pytest.raises(ValueError, match="must be distinct"):
        Vocabulary(["x", "x"])


@pytest.mark.parametrize("number", [-1, 6])
def test_id_outside_the_vocabulary(number: int) -> None:
    with pytest.raises(IndexError, match=f"id {number} is outside a vocabulary of 6 entries"):
        Vocabulary(["x", "y"]).token_of(number)
