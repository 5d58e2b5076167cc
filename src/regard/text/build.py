"""Training and loading of tokenizers by the name of their kind: the one registry."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from regard.base.errors import RunError
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.character import CharacterTokenizer
from regard.text.record import read_record
from regard.text.sentencepiece import ModelType, SentencePieceTokenizer
from regard.text.vocabulary import Vocabulary
from regard.text.word import WordTokenizer

Kind = Literal["character", "word", "sentencepiece", "byte-bpe"]
AnyTokenizer: TypeAlias = (
    CharacterTokenizer | WordTokenizer | SentencePieceTokenizer | ByteBpeTokenizer
)

TOKENIZERS: dict[str, type[AnyTokenizer]] = {
    "character": CharacterTokenizer,
    "word": WordTokenizer,
    "sentencepiece": SentencePieceTokenizer,
    "byte-bpe": ByteBpeTokenizer,
}
SUBWORDS = 8000


def train_tokenizer(
    texts: Iterable[str],
    *,
    kind: Kind,
    size: int | None = None,
    min_count: int = 1,
    model_type: ModelType = "unigram",
    character_coverage: float = 1.0,
) -> AnyTokenizer:
    """Learn a tokenizer from texts.

    `size` is the most entries it may have, special symbols included; without it, characters and
    words are limited by `min_count` alone and subwords to 8000. `model_type` and
    `character_coverage` are SentencePiece's, `min_count` is the others'.
    """
    if kind == "sentencepiece":
        return SentencePieceTokenizer.train(
            texts,
            size=SUBWORDS if size is None else size,
            model_type=model_type,
            character_coverage=character_coverage,
        )
    if kind == "byte-bpe":
        return ByteBpeTokenizer.train(texts, size=SUBWORDS if size is None else size)
    learned = CharacterTokenizer if kind == "character" else WordTokenizer
    return learned.train(texts, size=size, min_count=min_count)


def extend_tokenizer(
    known: AnyTokenizer, texts: Iterable[str], *, size: int | None = None, min_count: int = 1
) -> AnyTokenizer:
    """Return a tokenizer that knows the symbols of these texts besides; old ids stay.

    Subwords can spell any text, so there are more of them only if `size` makes room for them;
    the merges of byte-level BPE stay as they are.
    """
    if isinstance(known, ByteBpeTokenizer):
        return known
    if isinstance(known, SentencePieceTokenizer):
        return known if size is None else known.extended(texts, size=size)
    found = type(known).train(texts, min_count=min_count).vocabulary.symbols
    added = [symbol for symbol in found if symbol not in known.vocabulary]
    if size is not None:
        added = added[: max(0, size - known.size)]
    return type(known)(Vocabulary([*known.vocabulary.symbols, *added]))


def load_tokenizer(folder: Path, name: str) -> AnyTokenizer:
    """Read the tokenizer that was saved as `folder/name.*`."""
    kind = read_record(folder, name)["kind"]
    if kind not in TOKENIZERS:
        known = ", ".join(TOKENIZERS)
        raise RunError(
            f"{folder / f'{name}.json'} holds a tokenizer of the unknown kind {kind!r}; "
            f"known are {known}"
        )
    return TOKENIZERS[kind].load(folder, name)
