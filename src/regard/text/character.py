"""A tokenizer whose pieces are single characters."""

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
    """One id a Unicode code point; a character that was not seen in training is unknown."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary

    @classmethod
    def train(
        cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1
    ) -> CharacterTokenizer:
        """Learn the characters of these texts."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text)
        return cls(Vocabulary.from_counts(counts, size=size, min_count=min_count))

    @property
    def size(self) -> int:
        """How many entries the vocabulary has, special tokens included."""
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without begin and end marks."""
        ids = {character: self._id(character) for character in set(text)}
        return [ids[character] for character in text]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, leaving out special tokens other than the unknown one."""
        return "".join(self._surfaces(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return each id as a person should read it: itself, or a picture of whitespace."""
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
        """Read what `save` wrote."""
        return cls(vocabulary_of_record(folder, name))

    def _id(self, character: str) -> int:
        number = self.vocabulary.id_of(character)
        if number == UNKNOWN and character.isspace():
            return self.vocabulary.id_of(" ")  # an unknown kind of whitespace still parts words
        return number

    def _surfaces(self, ids: Sequence[int]) -> list[str]:
        """Return the text that each id adds."""
        return [
            self.vocabulary.token_of(number) if number == UNKNOWN or number >= len(SPECIALS) else ""
            for number in ids
        ]
