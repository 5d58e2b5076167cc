"""Verbs that take a that-clause: "the man thinks that the dog sleeps"."""

from __future__ import annotations

from regard.corpora.grammar.lexicon import Verb


def _verb(english: str, german: str, french: str) -> Verb:
    """Read a verb from its forms, in the order of `Verb`."""
    base, third, past = english.split()
    infinitive, first, er, preterite, plural = german.split()
    name, je, il, nous, ils, participle = french.split()
    return Verb(
        english=base,
        english_third=third,
        english_past=past,
        subjects=frozenset({"person"}),
        objects=frozenset(),
        small=False,
        german=infinitive,
        german_prefix="",
        german_first=first,
        german_third=er,
        german_past=preterite,
        german_past_plural=plural,
        german_case="",
        french=name,
        french_je=je,
        french_il=il,
        french_nous=nous,
        french_ils=ils,
        french_participle=participle,
        french_auxiliary="avoir",
        french_generic=False,
    )


CLAUSE_VERBS = (
    _verb(
        "think thinks thought",
        "denken denke denkt dachte dachten",
        "penser pense pense pensons pensent pensé",
    ),
    _verb(
        "know knows knew",
        "wissen weiß weiß wusste wussten",
        "savoir sais sait savons savent su",
    ),
    _verb(
        "believe believes believed",
        "glauben glaube glaubt glaubte glaubten",
        "croire crois croit croyons croient cru",
    ),
    _verb(
        "say says said",
        "sagen sage sagt sagte sagten",
        "dire dis dit disons disent dit",
    ),
    _verb(
        "hope hopes hoped",
        "hoffen hoffe hofft hoffte hofften",
        "espérer espère espère espérons espèrent espéré",
    ),
)
