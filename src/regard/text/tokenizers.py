"""Tokenizers by the name of their kind (the one registry), and text of many lines as one stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from regard.base.errors import RunError
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.character import CharacterTokenizer
from regard.text.sentencepiece import ModelType, SentencePieceTokenizer
from regard.text.vocabulary import Vocabulary, read_record
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

    `size` is the most entries it may have, special tokens included; without it, characters and
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
    """Return a tokenizer that knows the tokens of these texts besides; old ids stay.

    Subwords can spell any text, so there are more of them only if `size` makes room for them;
    the merges of byte-level BPE stay as they are.
    """
    if isinstance(known, ByteBpeTokenizer):
        return known
    if isinstance(known, SentencePieceTokenizer):
        return known if size is None else known.extended(texts, size=size)
    found = type(known).train(texts, min_count=min_count).vocabulary.tokens
    added = [token for token in found if token not in known.vocabulary]
    if size is not None:
        added = added[: max(0, size - known.size)]
    return type(known)(Vocabulary([*known.vocabulary.tokens, *added]))


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


NEWLINE = "\n"


class RunningText:
    """A tokenizer for text with line ends in it; text comes back exactly as it was.

    SentencePiece knows no line ends: each line is spelled as a text of its own, so that its first
    word has the same tokens as in mid-line, and the byte of the line end stands between them.
    """

    def __init__(self, tokenizer: AnyTokenizer):
        self.tokenizer = tokenizer
        by_line = isinstance(tokenizer, SentencePieceTokenizer)
        self._newline = tokenizer.encode(NEWLINE)[-1] if by_line else None

    @property
    def size(self) -> int:
        """How many entries the vocabulary has."""
        return self.tokenizer.size

    @property
    def end(self) -> int | None:
        """The id that the model itself may put after a text; None if it never learns one."""
        return self.tokenizer.end if isinstance(self.tokenizer, ByteBpeTokenizer) else None

    @property
    def opening(self) -> list[int]:
        """What a model reads before a text that has no beginning: an end of another text, or line.

        Empty if the vocabulary knows no line ends.
        """
        if self.end is not None:
            return [self.end]
        found = self.encode(NEWLINE)
        return found if self.decode(found) == NEWLINE else []

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        if self._newline is None:
            return self.tokenizer.encode(text)
        first, *others = text.split(NEWLINE)
        ids = self.tokenizer.encode(first)
        for line in others:
            ids.append(self._newline)
            ids += self.tokenizer.encode(line)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        if self._newline is None:
            return self.tokenizer.decode(ids)
        lines: list[list[int]] = [[]]
        for number in ids:
            if number == self._newline:
                lines.append([])
            else:
                lines[-1].append(number)
        return NEWLINE.join(self.tokenizer.decode(line) for line in lines)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return each id as a person should read it."""
        return self.tokenizer.pieces(ids)
