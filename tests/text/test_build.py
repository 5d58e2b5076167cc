from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from regard.base.errors import RunError, SettingsError
from regard.text.tokenizers import (
    TOKENIZERS,
    TokenizerKind,
    extend_tokenizer,
    load_tokenizer,
    train_tokenizer,
)

if TYPE_CHECKING:
    from regard.base.protocols import Tokenizer

TEXTS = ["the cats do not like dogs", "Die Katzen, müde.", "  l'eau\t"]

LEARNED = [kind for kind in TOKENIZERS if kind != "imported"]


@pytest.mark.parametrize("kind", LEARNED)
def test_trained_saved_and_loaded(kind: TokenizerKind, tmp_path: Path) -> None:
    tokenizer: Tokenizer = train_tokenizer(TEXTS, kind=kind)
    tokenizer.save(tmp_path, "source")
    loaded: Tokenizer = load_tokenizer(tmp_path, "source")
    assert type(loaded) is type(tokenizer)
    assert loaded.size == tokenizer.size
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert loaded.encode(text) == ids
        assert loaded.decode(ids) == text
        assert loaded.pieces(ids) == tokenizer.pieces(ids)
        assert len(loaded.word_of_piece(ids)) == len(ids)


@pytest.mark.parametrize("kind", LEARNED)
def test_no_text(kind: TokenizerKind) -> None:
    with pytest.raises(SettingsError, match="there is no text to"):
        train_tokenizer([], kind=kind)


def test_options_reach_the_tokenizer() -> None:
    assert train_tokenizer(["aab"], kind="character", min_count=2).size == 5
    assert train_tokenizer(["a a b"], kind="word", size=7).size == 7
    assert train_tokenizer(TEXTS, kind="sentencepiece", size=295, model_type="bpe").size == 295


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, r"source\.json is missing", id="missing"),
        pytest.param(b"", r"source\.json is cut short", id="empty"),
        pytest.param(b'{"kind": "wo', r"source\.json is cut short", id="cut short"),
        pytest.param(b"\xff\xfe", r"source\.json is cut short", id="not text"),
        pytest.param(b"[" * 100_000, r"source\.json is cut short", id="deeply nested"),
        pytest.param(b"[]", r"source\.json does not say what kind", id="not an object"),
        pytest.param(b'{"kind": 3}', r"source\.json does not say what kind", id="odd kind"),
        pytest.param(
            b'{"kind": "morse"}',
            r"source\.json holds .* unknown kind 'morse'; expected one of: character, word",
            id="unknown kind",
        ),
        pytest.param(b'{"kind": "word"}', r"source\.json has no list of tokens", id="no tokens"),
        pytest.param(
            b'{"kind": "word", "tokens": ["a", 1]}',
            r"source\.json has no list of tokens",
            id="odd tokens",
        ),
        pytest.param(
            b'{"kind": "character", "tokens": ["a", "a"]}',
            r"source\.json lists a token twice",
            id="repeated tokens",
        ),
    ],
)
def test_broken_files(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "source.json").write_bytes(content)
    with pytest.raises(RunError, match=message):
        load_tokenizer(tmp_path, "source")


def test_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "source.json").mkdir()
    with pytest.raises(RunError, match=r"source\.json cannot be read: Is a directory"):
        load_tokenizer(tmp_path, "source")


def test_text_does_without_torch() -> None:
    command = "import sys, regard.text.tokenizers; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0


@pytest.mark.parametrize(("kind", "word"), [("character", "xyq"), ("word", "zebra yak xerus")])
def test_new_tokens_come_after_the_old_ones(kind: TokenizerKind, word: str) -> None:
    known = train_tokenizer(TEXTS, kind=kind)
    larger = extend_tokenizer(known, [word])
    assert larger.size == known.size + 3
    assert [larger.encode(text) for text in TEXTS] == [known.encode(text) for text in TEXTS]
    assert larger.decode(larger.encode(word)) == word
    assert extend_tokenizer(known, [word], size=known.size + 2).size == known.size + 2
    assert extend_tokenizer(known, [word], size=8).size == known.size


def test_sentencepiece_spells_new_words_as_it_is() -> None:
    known = train_tokenizer(TEXTS, kind="sentencepiece", size=300)
    assert extend_tokenizer(known, ["zebra"]) is known
    assert extend_tokenizer(known, ["zebra"], size=known.size) is known
