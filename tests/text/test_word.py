from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.special_tokens import BEGIN, END, UNKNOWN
from regard.text.words import WordTokenizer, split


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("the cat", [" the", " cat"], id="single spaces cost nothing"),
        pytest.param("Straße, weil", [" Straße", ",", " weil"], id="natural punctuation"),
        pytest.param("straße , weil", [" straße", " ,", " weil"], id="pre-tokenised punctuation"),
        pytest.param("n'aiment", [" n'", "aiment"], id="elision"),
        pytest.param("lorsqu’il", [" lorsqu’", "il"], id="longer elision"),
        pytest.param("don't", [" don", "'t"], id="shortened word"),
        pytest.param("'so'", [" '", "so", "'"], id="quotation marks"),
        pytest.param("l' eau", [" l", "'", " eau"], id="apostrophe before a space"),
        pytest.param("3.14", [" 3", ".", "14"], id="number"),
        pytest.param("well-known", [" well", "-", "known"], id="hyphen"),
        pytest.param("e\u0301te\u0301", [" e\u0301te\u0301"], id="combining marks"),
        pytest.param("हिन्दी", [" हिन्दी"], id="vowel signs"),
        pytest.param(" a", [" ", " a"], id="leading space"),
        pytest.param("a  b", [" a", " ", " b"], id="two spaces"),
        pytest.param("a\tb", [" a", "\t", "b"], id="tab"),
        pytest.param("a\n b ", [" a", "\n", " b", " "], id="newline and trailing space"),
        pytest.param(" ", [" ", " "], id="a space alone"),
    ],
)
def test_split(text: str, tokens: list[str]) -> None:
    assert list(split(text)) == tokens


TEXTS = st.one_of(
    st.text(),
    st.text(alphabet="ab ,'’\t\n\u00a0qué\u0301."),
    st.lists(st.sampled_from(["the", "Katze", ",", "l'", "…", "e\u0301"])).map(" ".join),
)


@settings(deadline=None, max_examples=200)
@given(TEXTS)
def test_every_text_of_known_words_round_trips(text: str) -> None:
    tokenizer = WordTokenizer.train([text, "x"])
    ids = tokenizer.encode(text)
    assert UNKNOWN not in ids
    assert tokenizer.decode(ids) == text
    assert len(tokenizer.pieces(ids)) == len(ids)
    assert max(tokenizer.word_of_piece(ids), default=0) == max(0, len(text.split()) - 1)


@pytest.mark.parametrize("seen", [", (", "a,("])
@settings(deadline=None, max_examples=100)
@given(text=st.text(alphabet=",( \t"))
def test_a_piece_known_in_one_spacing_is_known_in_all(seen: str, text: str) -> None:
    tokenizer = WordTokenizer.train([seen, "\t"])
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        pytest.param("so weil", "(weil", id="a glued word seen only after a space"),
        pytest.param("so, ja", "so , ja", id="a spaced comma seen only glued"),
        pytest.param("so,", ", so", id="a comma that begins the text"),
    ],
)
def test_other_spacing_of_a_known_word(seen: str, text: str) -> None:
    tokenizer = WordTokenizer.train([seen, "("])
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    ("text", "decoded", "words"),
    [
        ("the dog", "the <unk>", [0, 1]),
        ("dog the", "<unk> the", [0, 1]),
        ("the?", "the<unk>", [0, 0, 0]),
        ("the\tcat", "the cat", [0, 1, 1, 1]),
    ],
)
def test_unknown_words_keep_their_spacing(text: str, decoded: str, words: list[int]) -> None:
    tokenizer = WordTokenizer.train(["the cat"])
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == decoded
    assert tokenizer.word_of_piece(ids) == words


def test_special_tokens_add_no_text() -> None:
    tokenizer = WordTokenizer.train(["the cat."])
    ids = [BEGIN, *tokenizer.encode("the cat."), END]
    assert tokenizer.decode(ids) == "the cat."
    assert tokenizer.pieces(ids) == ["<s>", "the", "cat", ".", "</s>"]
    assert tokenizer.word_of_piece(ids) == [0, 0, 1, 1, 1]


def test_a_text_that_spells_a_special_token_is_text() -> None:
    tokenizer = WordTokenizer.train(["<s> a </s>"])
    ids = tokenizer.encode("<s> a </s>")
    assert min(ids) > END
    assert tokenizer.decode(ids) == "<s> a </s>"


def test_labels_of_whitespace_and_joiner() -> None:
    tokenizer = WordTokenizer.train(["a b"])
    assert tokenizer.pieces(tokenizer.encode("a  ba")) == ["a", "␣", "<unk>"]
    assert tokenizer.pieces(tokenizer.encode("a(b")) == ["a", "⁀", "<unk>", "⁀", "b"]


def test_size_and_min_count() -> None:
    texts = ["the cat the dog", "the cat"]
    assert WordTokenizer.train(texts, min_count=2).vocabulary.tokens == ("", " ", " the", " cat")
    assert WordTokenizer.train(texts, size=7).vocabulary.tokens == ("", " ", " the")
    assert WordTokenizer.train(texts, size=7).size == 7


def test_saved_and_loaded(tmp_path: Path) -> None:
    tokenizer = WordTokenizer.train(["Größe,\n\tso  was"])
    tokenizer.save(tmp_path, "target")
    loaded = WordTokenizer.load(tmp_path, "target")
    assert loaded.vocabulary.tokens == tokenizer.vocabulary.tokens
    assert [path.name for path in tmp_path.iterdir()] == ["target.json"]


def test_records_of_earlier_runs_are_read(tmp_path: Path) -> None:
    record = '{"kind": "word", "symbols": ["", " ", " cat"]}'
    (tmp_path / "source.json").write_text(record, encoding="utf-8")
    assert WordTokenizer.load(tmp_path, "source").decode([6]) == "cat"


CAPITALS = ["The cats sleep.", "the Cats of Berlin like dogs", "in USA"]


@pytest.mark.parametrize(
    ("text", "pieces", "words"),
    [
        pytest.param("Cats sleep", ["⇧", "cats", "sleep"], [0, 0, 1], id="first word"),
        pytest.param("the Dogs", ["the", "⇧", "dogs"], [0, 1, 1], id="a new capital"),
        pytest.param("Berlin in", ["Berlin", "in"], [0, 1], id="always a capital"),
        pytest.param("USA", ["USA"], [0], id="capitals alone"),
        pytest.param("DOGS", ["<unk>"], [0], id="all capitals"),
        pytest.param("dogs.Cats", ["dogs", ".", "⁀", "⇧", "cats"], [0] * 5, id="glued"),
        pytest.param("Zebras", ["<unk>"], [0], id="unknown"),
    ],
)
def test_capitals_can_be_marks(text: str, pieces: list[str], words: list[int]) -> None:
    tokenizer = WordTokenizer.train(CAPITALS, mark_capitals=True)
    ids = tokenizer.encode(text)
    assert tokenizer.pieces(ids) == pieces
    assert tokenizer.word_of_piece(ids) == words
    if "<unk>" not in pieces:
        assert tokenizer.decode(ids) == text


def test_marks_are_saved_and_kept_when_words_are_added(tmp_path: Path) -> None:
    tokenizer = WordTokenizer.train(CAPITALS, mark_capitals=True).extended(["zebras"])
    tokenizer.save(tmp_path, "source")
    loaded = WordTokenizer.load(tmp_path, "source")
    assert loaded.decode(loaded.encode("Zebras like Cats.")) == "Zebras like Cats."
    assert "Cats" not in "".join(loaded.vocabulary.tokens)


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(["The", "the", "CATS", "Cats", ".", "(", " ", "  ", "\t", "ß", "É"]))
)
def test_with_marks_decoding_gives_back_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    tokenizer = WordTokenizer.train([text.lower() + " x", text], mark_capitals=True)
    assert tokenizer.decode(tokenizer.encode(text)) == text
