"""Text in any spelling of Unicode, and words that a vocabulary does not know."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from regard.base.errors import RunError
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.tokenizers import (
    TOKENIZERS,
    TokenizerKind,
    extend_tokenizer,
    load_tokenizer,
    train_tokenizer,
    unknown_parts,
)

COMPOSED = "Die Bücher gefallen müden Äpfeln"
APART = unicodedata.normalize("NFD", COMPOSED)


@pytest.mark.parametrize("kind", [kind for kind in TOKENIZERS if kind != "imported"])
def test_letters_that_look_alike_are_the_same_tokens(kind: TokenizerKind, tmp_path: Path) -> None:
    tokenizer = train_tokenizer([APART, COMPOSED], kind=kind)
    tokenizer.save(tmp_path, "source")
    for each in (tokenizer, load_tokenizer(tmp_path, "source")):
        assert each.encode(APART) == each.encode(COMPOSED)
        assert each.decode(each.encode(APART)) == COMPOSED
    assert json.loads((tmp_path / "source.json").read_text())["normalise"] == "nfc"


@pytest.mark.parametrize("kind", [kind for kind in TOKENIZERS if kind != "imported"])
def test_normalisation_can_be_switched_off(kind: TokenizerKind, tmp_path: Path) -> None:
    tokenizer = train_tokenizer([COMPOSED, APART], kind=kind, normalise="none")
    tokenizer.save(tmp_path, "source")
    assert tokenizer.decode(tokenizer.encode(APART)) == APART
    assert tokenizer.encode(APART) != tokenizer.encode(COMPOSED)
    assert "normalise" not in json.loads((tmp_path / "source.json").read_text())


@pytest.mark.parametrize("kind", [kind for kind in TOKENIZERS if kind != "imported"])
def test_a_tokenizer_without_the_record_reads_text_as_it_did(
    kind: TokenizerKind, tmp_path: Path
) -> None:
    train_tokenizer([COMPOSED], kind=kind).save(tmp_path, "source")
    record = json.loads((tmp_path / "source.json").read_text())
    del record["normalise"]
    (tmp_path / "source.json").write_text(json.dumps(record))
    earlier = load_tokenizer(tmp_path, "source")
    assert earlier.encode(APART) != earlier.encode(COMPOSED)


def test_an_unknown_form_is_refused(tmp_path: Path) -> None:
    train_tokenizer([COMPOSED], kind="word").save(tmp_path, "source")
    path = tmp_path / "source.json"
    path.write_text(path.read_text().replace('"nfc"', '"nfx"'))
    with pytest.raises(RunError, match="unknown normalisation 'nfx'; expected one of: nfc, none"):
        load_tokenizer(tmp_path, "source")
    path.write_text(path.read_text().replace('"nfx"', '{"a": 1}'))
    with pytest.raises(RunError, match="unknown normalisation"):
        load_tokenizer(tmp_path, "source")


@pytest.mark.parametrize("kind", ["character", "word"])
def test_new_tokens_are_normalised_like_the_old_ones(kind: TokenizerKind) -> None:
    larger = extend_tokenizer(train_tokenizer([COMPOSED], kind=kind), ["Mu\u0308cke ß"])
    assert larger.decode(larger.encode("Mücke ß")) == "Mücke ß"
    assert extend_tokenizer(larger, [APART]).size == larger.size


def test_sampled_subwords_are_normalised_too() -> None:
    tokenizer = train_tokenizer([COMPOSED] * 9, kind="sentencepiece", size=300)
    assert isinstance(tokenizer, SentencePieceTokenizer)
    (drawn,) = tokenizer.sample([APART], alpha=0.2, seed=1)
    assert tokenizer.decode(drawn) == COMPOSED


@pytest.mark.parametrize(
    ("kind", "text", "unknown"),
    [
        pytest.param("word", "Cats do not like dogs.", ("Cats", "dogs."), id="words"),
        pytest.param("word", "like zebras and zebras", ("zebras", "and"), id="each once"),
        pytest.param("word", "do not like", (), id="known words"),
        pytest.param("word", "", (), id="nothing"),
        pytest.param("character", "cats liKe dogs!", ("K", "!"), id="characters"),
        pytest.param("sentencepiece", "Zebras! 猫", (), id="subwords"),
        pytest.param("byte-bpe", "Zebras! 猫", (), id="bytes"),
    ],
)
def test_what_a_vocabulary_does_not_know(
    kind: TokenizerKind, text: str, unknown: tuple[str, ...]
) -> None:
    tokenizer = train_tokenizer(["cats do not like dogs"] * 20, kind=kind, size=290)
    assert unknown_parts(tokenizer, text, tokenizer.encode(text)) == unknown
