"""A sentence and its translation, with what is known about how their words correspond."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A source sentence and its translation.

    `alignment` holds (source word, target word) and `antecedents` (pronoun, its noun) in source
    words; words are those between spaces, counted from 0.
    """

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...] | None = None
    antecedents: tuple[tuple[int, int], ...] = ()
