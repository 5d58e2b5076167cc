"""How rich the drawn sentences are: everything, or the simple ones that a demo learns."""

from __future__ import annotations

from dataclasses import dataclass

from regard.corpora.grammar.tree import Conjunction, Determiner, Preposition


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What a sampler may use; determiners and prepositions repeat to be drawn more often."""

    determiners: tuple[Determiner, ...]
    subject_determiners: tuple[Determiner, ...]
    places: tuple[Preposition, ...]
    company: tuple[Preposition, ...]
    company_or_for: tuple[Preposition, ...]
    conjunctions: tuple[Conjunction, ...]
    numerals: bool
    pronouns: bool
    pronoun_percent: int
    modals: bool
    adverbs: bool
    relatives: bool
    contents: bool
    fronted: bool


COMMON: tuple[Determiner, ...] = ("the",) * 9 + ("a",) * 4
MARKED: tuple[Determiner, ...] = ("this", "this", "my", "his", "her", "our", "their", "")

FULL = Style(
    determiners=COMMON + MARKED,
    subject_determiners=(*COMMON, *MARKED, "every"),
    places=("in", "in", "in", "in", "on", "near", "near", "behind", "beside", "under"),
    company=("with", "with", "without"),
    company_or_for=("with", "without", "for", "for"),
    conjunctions=("because", "because", "because", "although", "if", "before", "while"),
    numerals=True,
    pronouns=True,
    pronoun_percent=16,
    modals=True,
    adverbs=True,
    relatives=True,
    contents=True,
    fronted=True,
)
SMALL = Style(
    determiners=("the", "the", "the", "a", ""),
    subject_determiners=("the", "the", "the", "a", ""),
    places=("in", "near", "behind"),
    company=("with",),
    company_or_for=("with", "for"),
    conjunctions=("because",),
    numerals=False,
    pronouns=False,
    pronoun_percent=25,
    modals=False,
    adverbs=False,
    relatives=False,
    contents=False,
    fronted=False,
)
