from __future__ import annotations

import hashlib
import io
import json
from functools import cache
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RunError, SettingsError
from regard.base.special_tokens import BEGIN, END, PAD, UNKNOWN
from regard.text.sentencepiece import ModelType, SentencePieceTokenizer

CORPUS = [
    "the cats do not like dogs",
    "the dogs like the old cats, because they are tired",
    "Katzen mögen keine Hunde",
    "Die alte Straße war zu breit, weil sie müde war.",
    "▁ and <s> and\ttabs",
] * 4


@cache
def trained(model_type: ModelType) -> SentencePieceTokenizer:
    return SentencePieceTokenizer.train(CORPUS, size=340, model_type=model_type)


MODEL_TYPES = pytest.mark.parametrize("model_type", ["unigram", "bpe"])


@MODEL_TYPES
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("the cats", id="known words"),
        pytest.param("The CATS", id="other case"),
        pytest.param("  the   cats  ", id="many spaces"),
        pytest.param(" ", id="a space alone"),
        pytest.param("a\tb\nc\r\n", id="tabs and newlines"),
        pytest.param("日本語 👩‍👩‍👧 e\u0301 é ﬁ Å", id="emoji, marks, compatibility characters"),
        pytest.param("▁a ▁ b▁▁", id="the character that SentencePiece writes for a space"),
        pytest.param(" ▁", id="space and that character"),
        pytest.param("<s> </s> <unk> <pad> <0x41>", id="names of special pieces"),
        pytest.param("\ufeff\u2585\ufffd\U0010ffff\u200b\u00a0", id="odd characters"),
        pytest.param("a\0b", id="a NUL"),
    ],
)
def test_round_trip(model_type: ModelType, text: str) -> None:
    tokenizer = trained(model_type)
    ids = tokenizer.encode(text)
    assert all(number > END for number in ids)
    assert tokenizer.decode(ids) == text
    assert len(tokenizer.pieces(ids)) == len(ids)


@MODEL_TYPES
@settings(deadline=None, max_examples=150)
@given(text=st.one_of(st.text(), st.text(alphabet="the cat▁\t\n\u2009ßé\u0301🙂")))
def test_every_text_round_trips(model_type: ModelType, text: str) -> None:
    tokenizer = trained(model_type)
    ids = tokenizer.encode(text)
    assert UNKNOWN not in ids
    assert tokenizer.decode(ids) == text
    words = tokenizer.word_of_piece(ids)
    assert words == sorted(words)
    assert max(words, default=0) == max(0, len(text.split()) - 1)


def test_words_of_pieces() -> None:
    tokenizer = trained("unigram")
    ids = tokenizer.encode("the 日 cats")
    words = tokenizer.word_of_piece(ids)
    for word, text in enumerate(["the", "日", "cats"]):
        chosen = [number for number, index in zip(ids, words, strict=True) if index == word]
        assert tokenizer.decode(chosen) == text
    assert tokenizer.word_of_piece([*ids, END])[-1] == 2


def test_special_tokens_add_no_text() -> None:
    tokenizer = trained("bpe")
    ids = [BEGIN, *tokenizer.encode("the cats"), END, PAD]
    assert tokenizer.decode(ids) == "the cats"
    assert tokenizer.decode([UNKNOWN]) == "<unk>"
    assert tokenizer.pieces([PAD, UNKNOWN, BEGIN, END]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_bytes_that_are_no_text_are_replaced() -> None:
    tokenizer = trained("unigram")
    assert tokenizer.decode(tokenizer.encode("日")[:-1]) == "�"


@MODEL_TYPES
def test_training_is_deterministic_and_silent(
    model_type: ModelType, capfd: pytest.CaptureFixture[str]
) -> None:
    again = SentencePieceTokenizer.train(iter(CORPUS), size=340, model_type=model_type)
    assert again.model == trained(model_type).model
    with pytest.raises(SettingsError):
        SentencePieceTokenizer.train(CORPUS, size=10, model_type=model_type)
    assert capfd.readouterr() == ("", "")


@MODEL_TYPES
@pytest.mark.parametrize("texts", [["a"], ["", "ab"], ["日本語 テスト"], CORPUS])
def test_a_small_corpus_gives_a_small_vocabulary(model_type: ModelType, texts: list[str]) -> None:
    tokenizer = SentencePieceTokenizer.train(texts, size=8000, model_type=model_type)
    assert 260 < tokenizer.size < 1000
    assert tokenizer.decode(tokenizer.encode(texts[-1])) == texts[-1]


def test_size_is_reached_where_the_data_supports_it() -> None:
    assert trained("bpe").size == 340


def test_rare_characters_are_left_to_bytes() -> None:
    texts = ["abcdefgh " * 500 + "日"]
    full = SentencePieceTokenizer.train(texts, size=300)
    covered = SentencePieceTokenizer.train(texts, size=300, character_coverage=0.999)
    assert "日" in full.pieces(full.encode("日"))
    assert "日" not in covered.pieces(covered.encode("日"))


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        pytest.param(["ab"], {"size": 262}, "262 entries is too small.*at least 263", id="small"),
        pytest.param(["ab"], {"size": 0}, "could not train a vocabulary of 0", id="zero"),
        pytest.param([], {"size": 300}, "no text to train", id="no texts"),
        pytest.param(["", " "], {"size": 300}, "no text to train", id="empty texts"),
        pytest.param(
            ["ab"],
            {"size": 300, "character_coverage": 2.0},
            r"character_coverage \(2.0\) must lie between 0.98 and 1",
            id="coverage",
        ),
    ],
)
def test_training_problems(texts: list[str], options: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        SentencePieceTokenizer.train(texts, **options)  # type: ignore[arg-type]


GREEK = ["οι γάτες δεν αγαπούν τους σκύλους", "οι σκύλοι αγαπούν τις γάτες", "γάτες 👩‍👩‍👧"] * 4


def test_subwords_of_new_texts_come_after_the_old_ones(tmp_path: Path) -> None:
    known = trained("unigram")
    larger = known.extended(GREEK, size=400)
    assert known.size < larger.size <= 400
    old = range(known.size)
    assert larger.pieces(old) == known.pieces(old)
    assert [larger.encode(text) for text in CORPUS] == [known.encode(text) for text in CORPUS]
    for text in GREEK:
        ids = larger.encode(text)
        assert larger.decode(ids) == text
        assert len(ids) < len(known.encode(text)) / 2  # it has no Greek: two bytes a letter
    larger.save(tmp_path, "source")
    assert SentencePieceTokenizer.load(tmp_path, "source").encode(GREEK[0]) == larger.encode(
        GREEK[0]
    )


def test_where_room_is_scarce_new_characters_come_first() -> None:
    known = trained("unigram")
    larger = known.extended(GREEK, size=known.size + 5)
    added = larger.pieces(range(known.size, larger.size))
    assert len(added) == 5
    assert all(len(piece) == 1 and piece in "".join(GREEK) for piece in added)


def test_saved_and_loaded(tmp_path: Path) -> None:
    trained("unigram").save(tmp_path / "run", "tokenizer")
    loaded = SentencePieceTokenizer.load(tmp_path / "run", "tokenizer")
    assert loaded.model == trained("unigram").model
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "tokenizer.json",
        "tokenizer.model",
    ]


def test_model_missing(tmp_path: Path) -> None:
    trained("unigram").save(tmp_path, "tokenizer")
    (tmp_path / "tokenizer.model").unlink()
    with pytest.raises(RunError, match=r"tokenizer\.model is missing"):
        SentencePieceTokenizer.load(tmp_path, "tokenizer")


def test_model_unreadable(tmp_path: Path) -> None:
    trained("unigram").save(tmp_path, "tokenizer")
    (tmp_path / "tokenizer.model").unlink()
    (tmp_path / "tokenizer.model").mkdir()
    with pytest.raises(RunError, match=r"tokenizer\.model cannot be read: Is a directory"):
        SentencePieceTokenizer.load(tmp_path, "tokenizer")


@pytest.mark.parametrize("kept", [0, 100, -1])
def test_model_cut_short(tmp_path: Path, kept: int) -> None:
    trained("unigram").save(tmp_path, "tokenizer")
    path = tmp_path / "tokenizer.model"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(RunError, match=r"tokenizer\.model is incomplete or changed"):
        SentencePieceTokenizer.load(tmp_path, "tokenizer")


def other_model(**options: object) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, minloglevel=2, vocab_size=50, **options
    )
    return model.getvalue()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: b"no model", "is not a SentencePiece model", id="not a model"),
        pytest.param(lambda: other_model(), "its special tokens have the ids", id="other ids"),
        pytest.param(
            lambda: other_model(pad_id=0, unk_id=1, bos_id=2, eos_id=3),
            "it has no tokens for single bytes",
            id="no bytes",
        ),
    ],
)
def test_a_foreign_model_is_refused(tmp_path: Path, make, message: str) -> None:  # type: ignore[no-untyped-def]
    model = make()
    (tmp_path / "source.model").write_bytes(model)
    record = {"kind": "sentencepiece", "sha256": hashlib.sha256(model).hexdigest()}
    (tmp_path / "source.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match=rf"source\.model.*{message}"):
        SentencePieceTokenizer.load(tmp_path, "source")
