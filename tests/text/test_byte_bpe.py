from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RunError, SettingsError
from regard.text.byte_bpe import END_OF_TEXT, ByteBpeTokenizer, byte_letters
from regard.text.tokenizers import extend_tokenizer, load_tokenizer, train_tokenizer

pytest.importorskip("tokenizers")

TEXTS = ["the cat sat on the mat\n", "the other cats don't sit  there\n", "Straße 👩‍👧\n"]
KNOWN = ByteBpeTokenizer.train(TEXTS, size=500)


def test_merges_make_words_of_bytes() -> None:
    assert KNOWN.size == len(KNOWN.merges) + 257 == ByteBpeTokenizer.train(TEXTS, size=9999).size
    assert ByteBpeTokenizer.train(TEXTS, size=270).size == 270
    assert KNOWN.end == KNOWN.size - 1
    ids = KNOWN.encode("the cat")
    assert KNOWN.pieces(ids) == ["the", "␣cat"]
    assert KNOWN.word_of_piece(KNOWN.encode("the cat 👩"))[:3] == [0, 1, 2]


@settings(deadline=None, max_examples=60)
@given(st.text())
def test_every_text_comes_back(text: str) -> None:
    assert KNOWN.decode(KNOWN.encode(text)) == text


def test_a_text_that_spells_the_end_is_ordinary() -> None:
    ids = KNOWN.encode(END_OF_TEXT)
    assert KNOWN.end not in ids
    assert KNOWN.decode([KNOWN.end, *ids, KNOWN.end]) == END_OF_TEXT


def test_a_letter_cut_off_is_replaced() -> None:
    assert KNOWN.decode(KNOWN.encode("é")[:-1] or KNOWN.encode("€")[:1]) == "\ufffd"


def test_saved_and_loaded(tmp_path: Path) -> None:
    KNOWN.save(tmp_path, "text")
    assert {path.name for path in tmp_path.iterdir()} == {
        "text.json",
        "text.vocab.json",
        "text.merges.txt",
    }
    found = load_tokenizer(tmp_path, "text")
    assert isinstance(found, ByteBpeTokenizer)
    assert (found.vocabulary, found.merges) == (KNOWN.vocabulary, KNOWN.merges)
    assert extend_tokenizer(found, ["new"]) is found


def test_trained_by_its_kind() -> None:
    assert isinstance(train_tokenizer(TEXTS, kind="byte-bpe", size=260), ByteBpeTokenizer)


def test_letters_stand_for_all_bytes() -> None:
    letters = byte_letters()
    assert sorted(letters.values()) == list(range(256))
    assert (letters["a"], letters["Ġ"], letters["Ċ"]) == (ord("a"), ord(" "), ord("\n"))


def test_a_piece_added_as_plain_text_stands_for_itself() -> None:
    more = ByteBpeTokenizer(
        vocabulary=KNOWN.vocabulary | {"<|user 1|>": KNOWN.size}, merges=KNOWN.merges
    )
    assert more.decode([KNOWN.size]) == "<|user 1|>"


def damaged(folder: Path, change: str) -> tuple[Path, Path]:
    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    KNOWN.write_files(vocabulary, merges)
    entries = json.loads(vocabulary.read_text(encoding="utf-8"))
    if change == "missing":
        merges.unlink()
    elif change == "folder":
        merges.unlink()
        merges.mkdir()
    elif change == "bytes":
        merges.write_bytes(b"\xff\xfe")
    elif change == "cut":
        vocabulary.write_text('{"a": 0', encoding="utf-8")
    elif change == "list":
        vocabulary.write_text("[1]", encoding="utf-8")
    elif change == "gap":
        entries["the"] = 1000
        vocabulary.write_text(json.dumps(entries), encoding="utf-8")
    elif change == "pair":
        merges.write_text("#version: 0.2\nt h\nthe\n", encoding="utf-8")
    else:
        merges.write_text("no pe\n", encoding="utf-8")
    return vocabulary, merges


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("missing", r"merges\.txt is missing"),
        ("folder", r"merges\.txt cannot be read"),
        ("bytes", r"merges\.txt is not UTF-8"),
        ("cut", r"vocab\.json is not a GPT-2 vocabulary"),
        ("list", r"vocab\.json is not a GPT-2 vocabulary: it is not a table of ids"),
        ("gap", r"vocab\.json and merges\.txt do not fit: the ids"),
        ("pair", r"merges\.txt, line 3: 'the' is not a pair"),
        ("unknown", r"vocab\.json and merges\.txt do not fit"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, change: str, message: str) -> None:
    with pytest.raises(RunError, match=message):
        ByteBpeTokenizer.read_files(*damaged(tmp_path, change))


def test_too_small_a_vocabulary() -> None:
    with pytest.raises(SettingsError, match="of 256 entries is too small"):
        ByteBpeTokenizer.train(TEXTS, size=256)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(SettingsError, match="pip install tokenizers"):
        ByteBpeTokenizer.train(TEXTS, size=300)
