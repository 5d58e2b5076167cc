"""Tokenizers that need no training algorithm: characters, and words with punctuation marks."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.text import vocabulary as vocabularies


class CharacterTokenizer:
    """One id per Unicode code point; characters that were not seen in training are unknown."""

    def __init__(self, vocabulary: vocabularies.Vocabulary):
        self.vocabulary = vocabulary

    @classmethod
    def train(
        cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1
    ) -> CharacterTokenizer:
        """Return a tokenizer with the characters of these texts."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text)
        return cls(vocabularies.Vocabulary.from_counts(counts, size=size, min_count=min_count))

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
        return [vocabularies.visible(self.vocabulary.token_of(number)) for number in ids]

    def word_of_piece(self, ids: Sequence[int]) -> list[int]:
        """Return for each id the index of the whitespace-separated word that it belongs to."""
        return vocabularies.words_of_surfaces(self._surfaces(ids))

    def save(self, folder: Path, name: str) -> None:
        """Write `folder/name.json`."""
        record = {"kind": "character", "tokens": list(self.vocabulary.tokens)}
        vocabularies.write_record(folder, name, record)

    @classmethod
    def load(cls, folder: Path, name: str) -> CharacterTokenizer:
        """Return the tokenizer that `save` wrote."""
        return cls(vocabularies.vocabulary_of_record(folder, name))

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


JOINER, SPACE = "", " "
JOINER_LABEL = "⁀"


class WordTokenizer:
    """One id per word or punctuation mark; words that were not seen in training are unknown."""

    def __init__(self, vocabulary: vocabularies.Vocabulary):
        self.vocabulary = vocabulary

    @classmethod
    def train(
        cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1
    ) -> WordTokenizer:
        """Return a tokenizer with the words of these texts."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(split(text))
        always = (JOINER, SPACE)
        return cls(
            vocabularies.Vocabulary.from_counts(
                counts, size=size, min_count=min_count, always=always
            )
        )

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary, special tokens included."""
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without begin and end tokens."""
        return [number for token in split(text) for number in self._ids(token)]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids, without special tokens except the unknown one."""
        return "".join(self._surfaces(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return each id as readable text: words without the space before them."""
        return [self._label(self.vocabulary.token_of(number)) for number in ids]

    def word_of_piece(self, ids: Sequence[int]) -> list[int]:
        """Return for each id the index of the whitespace-separated word that it belongs to."""
        return vocabularies.words_of_surfaces(self._surfaces(ids))

    def save(self, folder: Path, name: str) -> None:
        """Write `folder/name.json`."""
        vocabularies.write_record(
            folder, name, {"kind": "word", "tokens": list(self.vocabulary.tokens)}
        )

    @classmethod
    def load(cls, folder: Path, name: str) -> WordTokenizer:
        """Return the tokenizer that `save` wrote."""
        return cls(vocabularies.vocabulary_of_record(folder, name))

    def _ids(self, token: str) -> tuple[int, ...]:
        """Return the ids of one token, in its other spacing if only that is known."""
        vocabulary = self.vocabulary
        if token in vocabulary:
            return (vocabulary.id_of(token),)
        if token.isspace():
            return (vocabulary.id_of(SPACE),)  # unknown whitespace still separates words
        if not token.startswith(SPACE):
            # Also for a word that is unknown in both spacings: the unknown token stands after a
            # space, and the joiner keeps the count of words right.
            return (vocabulary.id_of(JOINER), vocabulary.id_of(SPACE + token))
        if (glued := token.removeprefix(SPACE)) in vocabulary:
            return (vocabulary.id_of(SPACE), vocabulary.id_of(glued))
        return (UNKNOWN,)

    def _surfaces(self, ids: Sequence[int]) -> list[str]:
        """Return the text that each id adds; the space before the first word adds none."""
        surfaces = []
        # The first space of a text only says that a word begins there.
        joined = True
        for number in ids:
            if number < len(SPECIALS) and number != UNKNOWN:
                surfaces.append("")
                continue
            token = self.vocabulary.token_of(number)
            surface = SPACE + token if number == UNKNOWN else token
            surfaces.append(surface.removeprefix(SPACE) if joined else surface)
            joined = token == JOINER
        return surfaces

    @staticmethod
    def _label(token: str) -> str:
        if token == JOINER:
            return JOINER_LABEL
        return vocabularies.visible(token if token.isspace() else token.removeprefix(SPACE))


def split(text: str) -> Iterator[str]:
    """Yield the tokens of a text: words with or without a space before them, and whitespace."""
    if not text:
        return
    # The space put before the text makes its first word the same token as in mid-sentence.
    for match in _pattern().finditer(SPACE + text):
        spacing, word = match["spacing"], match["word"]
        if word and spacing.endswith(SPACE):
            spacing, word = spacing[:-1], SPACE + word
        yield from spacing
        if word:
            yield word


@cache
def _pattern() -> re.Pattern[str]:
    r"""Return the pattern of one word with the whitespace before it.

    `\w` leaves out combining marks, without which "é" written as two code points and most words of
    India would fall apart, and the invisible joiners inside Persian and Indian words. Marks beyond
    the first 65,536 code points belong to rare scripts and would slow the pattern tenfold.
    """
    marks = "".join(
        chr(code)
        for code in range(0x300, 0x10000)
        if unicodedata.category(chr(code)).startswith("M")
    )
    letter = rf"[\w{marks}\u200c\u200d]"
    elided = rf"(?:(?<!{letter}){letter}|{letter}*[qQ][uU])['’](?={letter})"
    shortened = rf"(?<={letter})['’]{letter}+"
    # Most words have no apostrophe, so they come first; "++" never gives a letter back.
    word = rf"{letter}++(?!['’])|{elided}|{shortened}|{letter}+|\S"
    return re.compile(rf"(?P<spacing>\s*)(?P<word>{word}|$)")
