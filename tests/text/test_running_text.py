from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text.tokenizers import AnyTokenizer, RunningText, train_tokenizer

LINES = ["the cat sat\n", "  on the mat\n", "\n", "and there it stayed\n"] * 5
KINDS: dict[str, AnyTokenizer] = {
    "character": train_tokenizer(LINES, kind="character"),
    "sentencepiece": train_tokenizer(
        [line.strip("\n") for line in LINES], kind="sentencepiece", size=300
    ),
    "byte-bpe": train_tokenizer(LINES, kind="byte-bpe", size=300),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(text=st.text("the cast\n ▁", max_size=40))
def test_text_of_many_lines_comes_back(kind: str, text: str) -> None:
    running = RunningText(KINDS[kind])
    if kind == "character":
        text = text.replace("▁", "")
    assert running.decode(running.encode(text)) == text


def test_a_word_has_the_same_tokens_at_the_start_of_a_line() -> None:
    running = RunningText(KINDS["sentencepiece"])
    assert running.encode("the cat")[-1:] == running.encode("the\ncat")[-1:]


@pytest.mark.parametrize(("kind", "opening"), [("character", "\n"), ("sentencepiece", "\n")])
def test_what_stands_before_a_text_without_beginning(kind: str, opening: str) -> None:
    running = RunningText(KINDS[kind])
    assert running.decode(running.opening) == opening
    assert running.end is None


def test_the_end_of_a_text_stands_before_the_next() -> None:
    running = RunningText(KINDS["byte-bpe"])
    assert running.opening == [running.end] == [running.size - 1]
    assert running.pieces(running.encode("the")) == ["the"]


def test_a_vocabulary_without_line_ends_has_no_opening() -> None:
    assert RunningText(train_tokenizer(["abc"], kind="character")).opening == []
