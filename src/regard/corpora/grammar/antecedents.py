"""Finds a noun for a pronoun to stand for: what is said of it must fit no other noun in sight.

"The animal did not cross the street because it was too tired" and "... too wide": the adjective
alone tells which of the two is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from regard.corpora.grammar.lexicon import Adjective
from regard.corpora.grammar.random_stream import RandomStream
from regard.corpora.grammar.selection import Selection
from regard.corpora.grammar.tree import Clause, Coordination, Nominal, NounPhrase

PLURALS_PASSED = 70


class Antecedent(NamedTuple):
    """A noun phrase, and an adjective that fits it alone."""

    phrase: NounPhrase
    adjective: Adjective


def find_antecedent(stream: RandomStream, selection: Selection, host: Clause) -> Antecedent | None:
    """Return a head noun of the clause that some adjective singles out, or None."""
    in_sight = list(noun_phrases(host))
    joined = isinstance(host.subject, Coordination) or isinstance(host.object, Coordination)
    heads = [
        phrase
        for phrase in (host.subject, host.object)
        if isinstance(phrase, NounPhrase) and _may_stand(phrase, host, joined=joined)
    ]
    singular = [phrase for phrase in heads if not phrase.plural]
    # "It" shows its gender and "they" does not, so most hosts with plurals alone are passed over.
    if not heads or (not singular and stream.chance(PLURALS_PASSED)):
        return None
    chosen = stream.choose(singular or heads)
    rivals = {
        phrase.noun.kind
        for phrase in in_sight
        if phrase is not chosen and phrase.plural == chosen.plural
    }
    if not chosen.plural:
        rivals.discard("person")  # "it" is never a person
    adjectives = [
        adjective
        for adjective in selection.predicates[chosen.noun.kind]
        if not rivals & adjective.nouns
    ]
    return Antecedent(chosen, stream.choose(adjectives)) if adjectives else None


def _may_stand(phrase: NounPhrase, host: Clause, *, joined: bool) -> bool:
    """Whether "it" or "they" can refer to a phrase: not to a person, nor to what is denied."""
    denied = host.negated and phrase is host.object and phrase.indefinite
    if denied or phrase.determiner == "every":
        return False
    return not joined if phrase.plural else phrase.noun.kind != "person"


def noun_phrases(clause: Clause) -> Iterator[NounPhrase]:
    """Yield every noun phrase of a clause, those inside others included."""
    yield from _inside(clause.subject)
    if clause.object is not None:
        yield from _inside(clause.object)
    for phrase in clause.phrases:
        yield from _inside(phrase.complement)
    if clause.content is not None:
        yield from noun_phrases(clause.content)


def _inside(nominal: Nominal) -> Iterator[NounPhrase]:
    if isinstance(nominal, Coordination):
        yield from _inside(nominal.first)
        yield from _inside(nominal.second)
    elif isinstance(nominal, NounPhrase):
        yield nominal
        if nominal.place is not None:
            yield from _inside(nominal.place.complement)
        if nominal.relative is not None:
            yield from noun_phrases(nominal.relative)
