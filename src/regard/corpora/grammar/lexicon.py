"""The words of the grammar, each with its English, German and French forms.

There is one TSV file per word class. Its header line names the columns; an empty cell means that
the form follows the rule stated in the class below.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """A countable noun.

    `kind` is the semantic class: person, animal, food, drink, thing, clothing, tool, vehicle,
    document, building, place, plant. Genders are written masculine, feminine, neuter. Plurals are
    always given; `german_weak` marks the nouns that take -n or -en outside the nominative ("den
    Jungen"), written as that form; the German dative plural adds -n to the plural unless it ends
    in -n or -s. `french_aspirate` marks the h before which nothing is elided ("le hibou"); every
    other French noun on h, a vowel or œ elides.
    """

    english: str
    english_plural: str
    kind: str
    small: bool
    german: str
    german_gender: str
    german_plural: str
    german_weak: str
    french: str
    french_gender: str
    french_plural: str
    french_aspirate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A full verb.

    `subjects` and `objects` list the semantic classes that fit, separated by spaces; no objects
    means intransitive. `german_case` is the case of its object (accusative or dative, empty without
    one); the French object is always direct, and no verb here is reflexive or begins with an
    aspirate h.
    German forms are those of the verb without its separable prefix, which `german_prefix` holds
    (aufstehen: prefix auf, german stehen). Present 1st person singular, 3rd singular, past 1st/3rd
    singular and past plural are given; the present plural is the infinitive.
    French: present je, il, nous and ils, the participle, and its auxiliary (avoir or être).
    `french_generic` marks verbs of liking and fearing, whose bare plural object is generic ("les").
    """

    english: str
    english_third: str
    english_past: str
    subjects: frozenset[str]
    objects: frozenset[str]
    small: bool
    german: str
    german_prefix: str
    german_first: str
    german_third: str
    german_past: str
    german_past_plural: str
    german_case: str
    french: str
    french_je: str
    french_il: str
    french_nous: str
    french_ils: str
    french_participle: str
    french_auxiliary: str
    french_generic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjective:
    """An adjective, with the semantic classes of the nouns that it fits.

    The German form is the stem that takes endings (teuer: `german` teuer, `german_stem` teur; empty
    if they are the same). French plurals add -s unless the form ends in -s or -x (then unchanged)
    or -eau/-al (given in `french_masculine_plural`). `french_before` marks the few that stand
    before the noun, and `french_before_vowel` their masculine form there (bel, vieil, nouvel).
    `predicate` marks those used after "too" ("it was too tired").
    """

    english: str
    nouns: frozenset[str]
    small: bool
    predicate: bool
    german: str
    german_stem: str
    french_masculine: str
    french_feminine: str
    french_masculine_plural: str
    french_before: bool
    french_before_vowel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adverb:
    """An adverb: `kind` is time-past, time-present, frequency, manner or place."""

    english: str
    kind: str
    small: bool
    german: str
    french: str


Word = TypeVar("Word", Noun, Verb, Adjective, Adverb)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All words of one size."""

    nouns: tuple[Noun, ...]
    verbs: tuple[Verb, ...]
    adjectives: tuple[Adjective, ...]
    adverbs: tuple[Adverb, ...]


@cache
def lexicon(*, small: bool) -> Lexicon:
    """Return the full lexicon, or the small one that the demo learns from."""
    return Lexicon(
        nouns=_read("nouns.tsv", Noun, small=small),
        verbs=_read("verbs.tsv", Verb, small=small),
        adjectives=_read("adjectives.tsv", Adjective, small=small),
        adverbs=_read("adverbs.tsv", Adverb, small=small),
    )


@cache
def clause_verbs() -> tuple[Verb, ...]:
    """Return the verbs of saying and thinking, which take a that-clause."""
    return _read("clause_verbs.tsv", Verb, small=False)


@cache
def agreement_words() -> tuple[tuple[Noun, ...], tuple[Adjective, ...]]:
    """Return nouns and adjectives of agreements and houses, which have English and French only."""
    return (
        _read("agreement_nouns.tsv", Noun, small=False),
        _read("agreement_adjectives.tsv", Adjective, small=False),
    )


def _read(name: str, kind: type[Word], *, small: bool) -> tuple[Word, ...]:
    """Return the words of a file in their order, on which the sentences of every seed depend."""
    text = resources.files("regard.corpora.grammar").joinpath("words", name).read_text("utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    words = [kind(**_cells(row, kind)) for row in rows]
    return tuple(word for word in words if word.small or not small)


def _cells(row: dict[str, str], kind: type[Word]) -> dict[str, Any]:
    """Return the cells converted to the types of the fields."""
    readers: dict[str, Callable[[str], Any]] = {
        "str": str,
        "bool": lambda cell: cell == "yes",
        "frozenset[str]": lambda cell: frozenset(cell.split()),
    }
    return {field.name: readers[str(field.type)](row[field.name]) for field in fields(kind)}
