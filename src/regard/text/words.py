"""Tokenizers that need no training algorithm: characters, and words with punctuation marks."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.text import vocabulary as vocabularies


class CharacterTokenizer:
    """One id per Unicode code point; characters that were not seen in training are unknown."""

    def __init__(
        self, vocabulary: vocabularies.Vocabulary, *, normalise: vocabularies.Normalisation = "none"
    ):
        self.vocabulary = vocabulary
        self.normalise = normalise

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        size: int | None = None,
        min_count: int = 1,
        normalise: vocabularies.Normalisation = "none",
    ) -> CharacterTokenizer:
        """Return a tokenizer with the characters of these texts."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(vocabularies.NORMALISATIONS[normalise](text))
        found = vocabularies.Vocabulary.from_counts(counts, size=size, min_count=min_count)
        return cls(found, normalise=normalise)

    def extended(
        self, texts: Iterable[str], *, size: int | None = None, min_count: int = 1
    ) -> CharacterTokenizer:
        """Return a tokenizer with the characters of these texts added; known ids do not change."""
        fresh = self.train(texts, min_count=min_count, normalise=self.normalise).vocabulary
        return type(self)(self.vocabulary.extended(fresh, size=size), normalise=self.normalise)

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary, special tokens included."""
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without begin and end tokens."""
        text = vocabularies.NORMALISATIONS[self.normalise](text)
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
        record = {"kind": "character", **vocabularies.record_of(self.normalise)}
        vocabularies.write_record(folder, name, record | {"tokens": list(self.vocabulary.tokens)})

    @classmethod
    def load(cls, folder: Path, name: str) -> CharacterTokenizer:
        """Return the tokenizer that `save` wrote."""
        return cls(
            vocabularies.vocabulary_of_record(folder, name),
            normalise=vocabularies.form_of_record(folder, name),
        )

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
# Makes the next word begin with a capital. No word of a text ends with a space.
CAPITAL = "⇧ "
LABELS = {JOINER: "⁀", CAPITAL: "⇧"}


class WordTokenizer:
    """One id per word or punctuation mark; words that were not seen in training are unknown.

    With `mark_capitals`, "Cats" is a mark and then "cats" where the texts also have "cats", so that
    a word has one embedding wherever it stands; "Berlin" stays one token where they do not have
    "berlin".
    """

    def __init__(
        self,
        vocabulary: vocabularies.Vocabulary,
        *,
        normalise: vocabularies.Normalisation = "none",
        mark_capitals: bool = False,
    ):
        self.vocabulary = vocabulary
        self.normalise = normalise
        self.mark_capitals = mark_capitals

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        size: int | None = None,
        min_count: int = 1,
        normalise: vocabularies.Normalisation = "none",
        mark_capitals: bool = False,
    ) -> WordTokenizer:
        """Return a tokenizer with the words of these texts."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(split(vocabularies.NORMALISATIONS[normalise](text)))
        always: tuple[str, ...] = (JOINER, SPACE)
        if mark_capitals:
            counts, always = _with_small_letters(counts), (*always, CAPITAL)
        return cls(
            vocabularies.Vocabulary.from_counts(
                counts, size=size, min_count=min_count, always=always
            ),
            normalise=normalise,
            mark_capitals=mark_capitals,
        )

    def extended(
        self, texts: Iterable[str], *, size: int | None = None, min_count: int = 1
    ) -> WordTokenizer:
        """Return a tokenizer with the words of these texts added; known ids do not change."""
        options: dict[str, Any] = {
            "normalise": self.normalise,
            "mark_capitals": self.mark_capitals,
        }
        fresh = self.train(texts, min_count=min_count, **options).vocabulary
        return type(self)(self.vocabulary.extended(fresh, size=size), **options)

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary, special tokens included."""
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without begin and end tokens."""
        tokens = split(vocabularies.NORMALISATIONS[self.normalise](text))
        return [number for token in tokens for number in self._ids(token)]

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
        record: dict[str, Any] = {"kind": "word", **vocabularies.record_of(self.normalise)}
        if self.mark_capitals:
            record["mark_capitals"] = True
        vocabularies.write_record(folder, name, record | {"tokens": list(self.vocabulary.tokens)})

    @classmethod
    def load(cls, folder: Path, name: str) -> WordTokenizer:
        """Return the tokenizer that `save` wrote."""
        vocabulary = vocabularies.vocabulary_of_record(folder, name)
        return cls(
            vocabulary,
            normalise=vocabularies.form_of_record(folder, name),
            mark_capitals=CAPITAL in vocabulary,
        )

    def _ids(self, token: str) -> tuple[int, ...]:
        """Return the ids of one token, in its other spacing if only that is known."""
        vocabulary = self.vocabulary
        if token in vocabulary:
            return (vocabulary.id_of(token),)
        if token.isspace():
            return (vocabulary.id_of(SPACE),)  # unknown whitespace still separates words
        if self.mark_capitals and (small := _small(token)) != token:
            *before, last = self._ids(small)
            if last != UNKNOWN:
                return (*before, vocabulary.id_of(CAPITAL), last)
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
        joined, raised = True, False
        for place, number in enumerate(ids):
            if number < len(SPECIALS) and number != UNKNOWN:
                surfaces.append("")
                continue
            token = self.vocabulary.token_of(number)
            if token == CAPITAL:
                # It belongs to the word after it, so it takes over the space before that word.
                spaced = not joined and self._begins_word(ids[place + 1 : place + 2])
                surfaces.append(SPACE if spaced else "")
                joined, raised = joined or spaced, True
                continue
            surface = SPACE + token if number == UNKNOWN else token
            surface = surface.removeprefix(SPACE) if joined else surface
            surfaces.append(_raised(surface) if raised and number != UNKNOWN else surface)
            joined, raised = token == JOINER, False
        return surfaces

    def _begins_word(self, ids: Sequence[int]) -> bool:
        """Return whether the first of these ids stands for a word with a space before it."""
        tokens = [self.vocabulary.token_of(number) for number in ids]
        return any(number == UNKNOWN for number in ids) or any(
            token.startswith(SPACE) for token in tokens
        )

    @staticmethod
    def _label(token: str) -> str:
        if token in LABELS:
            return LABELS[token]
        return vocabularies.visible(token if token.isspace() else token.removeprefix(SPACE))


def _small(token: str) -> str:
    """Return a token without its capital; as it is if it has none, or more than the first."""
    spacing, word = (SPACE, token[1:]) if token.startswith(SPACE) else ("", token)
    small = word[:1].lower()
    if len(small) != 1 or small == word[:1] or small.upper() != word[:1]:
        return token
    return spacing + small + word[1:] if word[1:] == word[1:].lower() else token


def _raised(surface: str) -> str:
    """Return the text of a token with its first letter as a capital."""
    word = surface.lstrip(SPACE)
    return surface[: len(surface) - len(word)] + word[:1].upper() + word[1:]


def _with_small_letters(counts: Counter[str]) -> Counter[str]:
    """Return the counts of tokens, in small letters where the texts have them so."""
    known = {token.removeprefix(SPACE) for token in counts}
    merged: Counter[str] = Counter()
    for token, count in counts.items():
        small = _small(token)
        merged[small if small.removeprefix(SPACE) in known else token] += count
    return merged


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
