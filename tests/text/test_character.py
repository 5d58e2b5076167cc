from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.special_tokens import BEGIN, END, PAD, UNKNOWN
from regard.text.words import CharacterTokenizer


@settings(deadline=None, max_examples=100)
@given(st.text())
def test_every_text_of_known_characters_round_trips(text: str) -> None:
    tokenizer = CharacterTokenizer.train([text, "x"])
    ids = tokenizer.encode(text)
    assert len(ids) == len(text)
    assert UNKNOWN not in ids
    assert tokenizer.decode(ids) == text
    assert len(tokenizer.pieces(ids)) == len(tokenizer.word_of_piece(ids)) == len(ids)


def test_unknown_characters() -> None:
    tokenizer = CharacterTokenizer.train(["ab c"])
    assert tokenizer.encode("aX") == [tokenizer.encode("a")[0], UNKNOWN]
    assert tokenizer.decode(tokenizer.encode("aXb")) == "a<unk>b"
    assert tokenizer.decode(tokenizer.encode("a\tb")) == "a b"


def test_special_tokens_add_no_text() -> None:
    tokenizer = CharacterTokenizer.train(["ab"])
    assert tokenizer.decode([BEGIN, *tokenizer.encode("ab"), END, PAD]) == "ab"


def test_pieces_and_words() -> None:
    tokenizer = CharacterTokenizer.train(["ab\tc d"])
    ids = tokenizer.encode("ab\tc d")
    assert tokenizer.pieces([*ids, END]) == ["a", "b", "⇥", "c", "␣", "d", "</s>"]
    assert tokenizer.word_of_piece([*ids, END]) == [0, 0, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("size", [None, 6])
def test_size_and_min_count(size: int | None) -> None:
    tokenizer = CharacterTokenizer.train(["aab", "abc"], size=size, min_count=2)
    assert tokenizer.vocabulary.tokens == ("a", "b")
    assert tokenizer.size == 6


def test_saved_and_loaded(tmp_path: Path) -> None:
    tokenizer = CharacterTokenizer.train(["a\n\t \r\u2028é👩‍👩‍👧\ufeff"])
    tokenizer.save(tmp_path / "run", "source")
    loaded = CharacterTokenizer.load(tmp_path / "run", "source")
    assert loaded.vocabulary.tokens == tokenizer.vocabulary.tokens
