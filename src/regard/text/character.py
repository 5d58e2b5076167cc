"""A tokenizer for single characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.text.vocabulary import (
    Vocabulary,
    visible,
    vocabulary_of_record,
    words_of_surfaces,
    write_record,
)


class CharacterTokenizer:
    """One id per Unicode code point; characters that were not seen in training are unknown."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary

    @classmethod
    def train(
        cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1
    ) -> CharacterTokenizer:
        """Return a tokenizer with the characters of these texts."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text)
        return cls(Vocabulary.from_counts(counts, size=size, min_count=min_count))

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary, special tokens included."""
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without begin and end tokens."""
        ids = {character: self._id(character) for character in set(text)}
        return [ids[character] for character in text]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids, without special tokens except the unknown one."""
        return "".join(self._surfaces(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return each id as readable text, with whitespace made visible."""
        return [visible(self.vocabulary.token_of(number)) for number in ids]

    def word_of_piece(self, ids: Sequence[int]) -> list[int]:
        """Return for each id the index of the whitespace-separated word that it belongs to."""
        return words_of_surfaces(self._surfaces(ids))

    def save(self, folder: Path, name: str) -> None:
        """Write `folder/name.json`."""
        record = {"kind": "character", "tokens": list(self.vocabulary.tokens)}
        write_record(folder, name, record)

    @classmethod
    def load(cls, folder: Path, name: str) -> CharacterTokenizer:
        """Return the tokenizer that `save` wrote."""
        return cls(vocabulary_of_record(folder, name))

    def _id(self, character: str) -> int:
        number = self.vocabulary.id_of(character)
        if number == UNKNOWN and character.isspace():
            return self.vocabulary.id_of(" ")  # unknown whitespace still separates words
        return number

    def _surfaces(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each id."""
        return [
            self.vocabulary.token_of(number) if number == UNKNOWN or number >= len(SPECIALS) else ""
            for number in ids
        ]
