"""The registry of tokenizers, and a wrapper for running text with line breaks."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from regard.base.errors import RunError
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.sentencepiece import ModelType, SentencePieceTokenizer
from regard.text.vocabulary import Vocabulary, read_record
from regard.text.words import CharacterTokenizer, WordTokenizer

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

    `size` is the largest number of entries, special tokens included. By default, characters and
    words are limited by `min_count` only, and subwords to 8000. `model_type` and
    `character_coverage` apply to SentencePiece, `min_count` to characters and words.
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
    """Return a tokenizer with the tokens of these texts added; known ids do not change.

    Subwords can spell any text, so new ones are added only if `size` leaves room for them.
    The merges of byte-level BPE do not change.
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
    """Return the tokenizer that was saved as `folder/name.*`."""
    kind = read_record(folder, name)["kind"]
    if kind not in TOKENIZERS:
        known = ", ".join(TOKENIZERS)
        raise RunError(
            f"{folder / f'{name}.json'} holds a tokenizer of unknown kind {kind!r}; "
            f"expected one of: {known}"
        )
    return TOKENIZERS[kind].load(folder, name)


NEWLINE = "\n"


class RunningText:
    """A tokenizer for text with line breaks; decoding gives back exactly the encoded text.

    SentencePiece has no token for a line break. Each line is therefore encoded as a text of its
    own, so that its first word has the same tokens as in mid-line, with the byte of the line break
    between the lines.
    """

    def __init__(self, tokenizer: AnyTokenizer):
        self.tokenizer = tokenizer
        by_line = isinstance(tokenizer, SentencePieceTokenizer)
        self._newline = tokenizer.encode(NEWLINE)[-1] if by_line else None

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary."""
        return self.tokenizer.size

    @property
    def end(self) -> int | None:
        """The id that ends a text; None if the vocabulary has none."""
        return self.tokenizer.end if isinstance(self.tokenizer, ByteBpeTokenizer) else None

    @property
    def opening(self) -> list[int]:
        """The ids that a model reads before an empty prompt: the end of another text or line.

        Empty if the vocabulary has no line break.
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
        """Return the text of these ids."""
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
        """Return each id as readable text."""
        return self.tokenizer.pieces(ids)
