"""Vocabularies, their JSON files, the text that each token stands for, and its normalisation."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from regard.base.errors import RunError, SettingsError
from regard.base.files import read_json, write_file
from regard.base.special_tokens import SPECIALS, UNKNOWN


class Vocabulary:
    """A mapping between tokens and ids.

    Text is never read as a special token: "</s>" in a text is ordinary text. Special tokens have
    ids, but `id_of` does not find them.
    """

    def __init__(self, tokens: Iterable[str]):
        self.tokens = tuple(tokens)
        self._ids = {token: number for number, token in enumerate(self.tokens, len(SPECIALS))}
        if len(self._ids) != len(self.tokens):
            raise ValueError("the tokens of a vocabulary must be distinct")

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        size: int | None = None,
        min_count: int = 1,
        always: tuple[str, ...] = (),
    ) -> Vocabulary:
        """Return a vocabulary of the most frequent tokens; ties are ordered by code point.

        `size` is the largest number of entries, special tokens included. Tokens in `always` are
        kept whatever their count.
        """
        least = len(SPECIALS) + len(always) + 1
        if size is not None and size < least:
            raise SettingsError(
                f"a vocabulary of {size} entries is too small, because {least - 1} are always "
                f"there: the size must be at least {least}"
            )
        frequent = sorted(
            (token for token, count in counts.items() if count >= min_count),
            key=lambda token: (-counts[token], token),
        )
        if not frequent:
            raise SettingsError(
                f"there is no text to learn a vocabulary from: no token occurs {min_count} or more "
                "times"
            )
        kept = [*always, *(token for token in frequent if token not in always)]
        return cls(kept if size is None else kept[: size - len(SPECIALS)])

    def extended(self, fresh: Vocabulary, *, size: int | None = None) -> Vocabulary:
        """Return a vocabulary with the tokens of another added, up to `size` entries."""
        added = [token for token in fresh.tokens if token not in self]
        if size is not None:
            added = added[: max(0, size - len(self))]
        return Vocabulary([*self.tokens, *added])

    def __len__(self) -> int:
        return len(SPECIALS) + len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def id_of(self, token: str) -> int:
        """Return the id of a token, or the id of the unknown token."""
        return self._ids.get(token, UNKNOWN)

    def token_of(self, number: int) -> str:
        """Return the token with this id; special tokens are returned by name, such as "<unk>"."""
        if not 0 <= number < len(self):
            raise IndexError(f"id {number} is outside a vocabulary of {len(self)} entries")
        return SPECIALS[number] if number < len(SPECIALS) else self.tokens[number - len(SPECIALS)]


def write_record(folder: Path, name: str, record: dict[str, Any]) -> None:
    """Write `folder/name.json` with one token per line."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, ensure_ascii=False, indent=0)
    write_file(folder / f"{name}.json", text + "\n")


def vocabulary_of_record(folder: Path, name: str) -> Vocabulary:
    """Return the vocabulary that `folder/name.json` lists."""
    record = read_json(folder / f"{name}.json", owner="tokenizer")
    tokens = record.get("tokens", record.get("symbols"))  # the key of earlier runs
    problem = None
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        problem = "has no list of tokens"
    elif len(set(tokens)) != len(tokens):
        problem = "lists a token twice"
    if problem is not None or tokens is None:
        raise RunError(f"{folder / f'{name}.json'} {problem}, so the tokenizer cannot be read")
    return Vocabulary(tokens)


# Visible characters for whitespace in heat maps and on terminals.
VISIBLE = str.maketrans({" ": "␣", "\t": "⇥", "\n": "⏎", "\r": "␍", "\u00a0": "⍽"})


def words_of_surfaces(surfaces: Sequence[str]) -> list[int]:
    """Return for each token the index of the whitespace-separated word that it belongs to.

    `surfaces` are the texts of the tokens in order. A token belongs to the word of its first
    letter. A token of whitespace only belongs to the following word, or to the last word at the
    end of the text. A token without text (a special token, the second byte of a letter) belongs to
    the word around it.
    """
    words = []
    word, inside = -1, False
    for surface in surfaces:
        first = None
        for letter in surface:
            if letter.isspace():
                inside = False
            elif not inside:
                word, inside = word + 1, True
            if inside and first is None:
                first = word
        if first is None:
            first = word if inside else word + 1
        words.append(first)
    return [min(number, max(word, 0)) for number in words]


def visible(surface: str) -> str:
    """Return the text of a token with its whitespace made visible."""
    return surface.translate(VISIBLE)


def surfaces_of_bytes(pieces: Sequence[bytes]) -> list[str]:
    """Return the text of each token; a letter in several bytes belongs to its first byte."""
    surfaces: list[str] = []
    position = 0
    text = b"".join(pieces)
    for piece in pieces:
        end = position + len(piece)
        start = position
        while start < end and text[start] & 0xC0 == 0x80:  # a byte that continues a letter
            start += 1
        while start < end < len(text) and text[end] & 0xC0 == 0x80:
            end += 1
        surfaces.append(text[start:end].decode("utf-8", errors="replace"))
        position += len(piece)
    return surfaces


Normalisation: TypeAlias = Literal["nfc", "none"]
NORMALISE = "normalise"
# "é" is one code point in most texts (NFC), and two, "e" and an accent, in others (NFD), as in
# names of files on a Mac. They look alike, but a model that has seen one does not know the other.
composed: Callable[[str], str] = partial(unicodedata.normalize, "NFC")
# How text is normalised before it is cut.
NORMALISATIONS: dict[Normalisation, Callable[[str], str]] = {"nfc": composed, "none": str}


def uncomposed(texts: Iterable[str]) -> int:
    """Return how many texts are not in composed form."""
    return sum(not unicodedata.is_normalized("NFC", text) for text in texts)


def record_of(form: Normalisation) -> dict[str, Any]:
    """Return what the file of a tokenizer says about it; nothing for text as it is."""
    return {} if form == "none" else {NORMALISE: form}


def form_of_record(folder: Path, name: str) -> Normalisation:
    """Return the form that the file of a tokenizer names; earlier runs took text as it is."""
    form: Normalisation = read_json(folder / f"{name}.json", owner="tokenizer").get(
        NORMALISE, "none"
    )
    return form
