"""The registry of tokenizers, and a wrapper for running text with line breaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from regard.base.errors import RunError, SettingsError
from regard.base.files import read_json
from regard.base.special_tokens import UNKNOWN
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.imported import ImportedTokenizer
from regard.text.sentencepiece import ModelType, SentencePieceTokenizer
from regard.text.vocabulary import NORMALISATIONS, NORMALISE, Normalisation
from regard.text.words import CharacterTokenizer, WordTokenizer

if TYPE_CHECKING:
    from regard.base.protocols import Tokenizer

TokenizerKind = Literal["character", "word", "sentencepiece", "byte-bpe", "imported"]
AnyTokenizer: TypeAlias = (
    CharacterTokenizer
    | WordTokenizer
    | SentencePieceTokenizer
    | ByteBpeTokenizer
    | ImportedTokenizer
)

TOKENIZERS: dict[str, type[AnyTokenizer]] = {
    "character": CharacterTokenizer,
    "word": WordTokenizer,
    "sentencepiece": SentencePieceTokenizer,
    "byte-bpe": ByteBpeTokenizer,
    "imported": ImportedTokenizer,
}
SUBWORDS = 8000


def train_tokenizer(
    texts: Iterable[str],
    *,
    kind: TokenizerKind,
    size: int | None = None,
    min_count: int = 1,
    model_type: ModelType = "unigram",
    character_coverage: float = 1.0,
    normalise: Normalisation = "nfc",
    mark_capitals: bool = False,
) -> AnyTokenizer:
    """Learn a tokenizer from texts.

    `size` is the largest number of entries, special tokens included. By default, characters and
    words are limited by `min_count` only, and subwords to 8000. `model_type` and
    `character_coverage` apply to SentencePiece, `min_count` to characters and words, and
    `mark_capitals` to words. Text is brought into Unicode's composed form before it is cut, unless
    `normalise` is "none".
    """
    if kind == "sentencepiece":
        return SentencePieceTokenizer.train(
            texts,
            size=SUBWORDS if size is None else size,
            model_type=model_type,
            character_coverage=character_coverage,
            normalise=normalise,
        )
    if kind == "imported":
        raise SettingsError(
            'tokenizer.kind = "imported" belongs to an imported model and cannot be learned; start '
            "from its run, or choose another kind."
        )
    if kind == "byte-bpe":
        return ByteBpeTokenizer.train(
            texts, size=SUBWORDS if size is None else size, normalise=normalise
        )
    if kind == "character":
        return CharacterTokenizer.train(texts, size=size, min_count=min_count, normalise=normalise)
    return WordTokenizer.train(
        texts, size=size, min_count=min_count, normalise=normalise, mark_capitals=mark_capitals
    )


def extend_tokenizer(
    known: AnyTokenizer, texts: Iterable[str], *, size: int | None = None, min_count: int = 1
) -> AnyTokenizer:
    """Return a tokenizer with the tokens of these texts added; known ids do not change.

    Subwords can spell any text, so new ones are added only if `size` leaves room for them.
    The merges of byte-level BPE and the tokenizers of imported models do not change.
    """
    if isinstance(known, ByteBpeTokenizer | ImportedTokenizer):
        return known
    if isinstance(known, SentencePieceTokenizer):
        return known if size is None else known.extended(texts, size=size)
    return known.extended(texts, size=size, min_count=min_count)


def load_tokenizer(folder: Path, name: str) -> AnyTokenizer:
    """Return the tokenizer that was saved as `folder/name.*`."""
    path = folder / f"{name}.json"
    record = read_json(path, owner="tokenizer")
    kind = record.get("kind") if isinstance(record, dict) else None
    if not isinstance(kind, str):
        raise RunError(f"{path} does not say what kind of tokenizer it holds")
    if kind not in TOKENIZERS:
        known = ", ".join(TOKENIZERS)
        raise RunError(
            f"{path} holds a tokenizer of unknown kind {kind!r}; expected one of: {known}"
        )
    form = record.get(NORMALISE, "none")
    if not isinstance(form, str) or form not in NORMALISATIONS:
        raise RunError(
            f"{path} asks for the unknown normalisation {form!r}; expected one of: "
            f"{', '.join(NORMALISATIONS)}"
        )
    return TOKENIZERS[kind].load(folder, name)


def unknown_parts(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> tuple[str, ...]:
    """Return what a vocabulary does not know of a text, each part once, in order.

    The parts are whitespace-separated words, or the characters themselves where each character is a
    token. Subwords that fall back to bytes know every text.
    """
    unknown = _unknown_id(tokenizer)
    if unknown not in ids:
        return ()
    if isinstance(tokenizer, CharacterTokenizer):
        parts: Sequence[str] = NORMALISATIONS[tokenizer.normalise](text)
        places: Sequence[int] = range(len(ids))
    else:
        parts, places = text.split(), tokenizer.word_of_piece(ids)
    found = (place for place, number in zip(places, ids, strict=True) if number == unknown)
    return tuple(dict.fromkeys(parts[place] for place in found if place < len(parts)))


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id of what is unknown; None where byte-level BPE spells every text."""
    if isinstance(tokenizer, ByteBpeTokenizer):
        return None
    if isinstance(tokenizer, ImportedTokenizer) and tokenizer.numbering.identity:
        return tokenizer.numbering.unknown
    return UNKNOWN


MOST_NAMED = 8
LONGEST_NAMED = 40  # characters of a part that are shown


@dataclass
class UnknownCount:
    """What a vocabulary did not know of many texts, and how often."""

    noun: str = "word"
    """"word", or "character" where each character is a token."""
    texts: str = "sentences"
    parts: Counter[str] = field(default_factory=Counter)
    sentences: int = 0
    affected: int = 0

    def add(self, unknown: Iterable[str]) -> None:
        """Count the unknown parts of one more text."""
        found = list(unknown)
        self.sentences += 1
        self.affected += bool(found)
        self.parts.update(found)

    def __str__(self) -> str:
        """Return it as `[2 unknown words: Cats, dogs.]`; nothing where everything is known."""
        if not self.parts:
            return ""
        ranked = list(self.parts.items())  # of one sentence, in its order
        if self.sentences > 1:
            ranked.sort(key=lambda item: (-item[1], item[0]))
        named = [
            f"{_shortened(part)} ({count:,} times)" if count > 1 else _shortened(part)
            for part, count in ranked[:MOST_NAMED]
        ]
        more = len(self.parts) - len(named)
        where = f" in {self.affected:,} of {self.sentences:,} {self.texts}" * (self.sentences > 1)
        return (
            f"[{len(self.parts):,} unknown {self.noun}{'s' * (len(self.parts) > 1)}{where}: "
            f"{', '.join(named)}{f' and {more:,} more' if more else ''}]"
        )


def _shortened(part: str) -> str:
    return part if len(part) <= LONGEST_NAMED else f"{part[:LONGEST_NAMED]}…"


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
        if isinstance(self.tokenizer, ByteBpeTokenizer | ImportedTokenizer):
            return self.tokenizer.end
        return None

    @property
    def ends(self) -> tuple[int, ...]:
        """All ids that end a text."""
        if isinstance(self.tokenizer, ImportedTokenizer):
            return self.tokenizer.ends
        return () if self.end is None else (self.end,)

    @property
    def opening(self) -> list[int]:
        """The ids that a model reads before an empty prompt: the end of another text or line.

        Empty if the vocabulary has no line break, or puts marks of its own before every text.
        """
        if isinstance(self.tokenizer, ImportedTokenizer) and self.tokenizer.opening:
            return []
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
