"""Sentences like that of Bahdanau's famous figure, whose French has another order of words.

"The agreement on the European economic area was signed in August 1992": "l'accord sur la zone
économique européenne a été signé en août 1992"; "the small red house": "la petite maison rouge".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from regard.corpora.grammar import french, tree
from regard.corpora.grammar import french_forms as forms
from regard.corpora.grammar.choices import RandomStream
from regard.corpora.grammar.lexicon import Adjective, Noun, agreement_words

LENGTHS = (7, 14)
"""Fewest and most words of a sentence."""
EVENT = 5
"""Words of "was signed in August 1992"."""


class Participle(NamedTuple):
    """What is done: an English participle, the French one, and the kinds of nouns it fits."""

    english: str
    french: str
    nouns: tuple[str, ...]


PARTICIPLES = (
    Participle("signed", "signé", ("text",)),
    Participle("published", "publié", ("text",)),
    Participle("approved", "approuvé", ("text",)),
    Participle("rejected", "rejeté", ("text",)),
    Participle("sold", "vendu", ("thing",)),
    Participle("built", "construit", ("thing",)),
    Participle("repaired", "réparé", ("thing",)),
    Participle("painted", "peint", ("thing",)),
)
MONTHS = {
    "January": "janvier", "February": "février", "March": "mars", "April": "avril",
    "May": "mai", "June": "juin", "July": "juillet", "August": "août",
    "September": "septembre", "October": "octobre", "November": "novembre",
    "December": "décembre",
}  # fmt: skip
YEARS = (1950, 1999)
# In English these come before the second kind: size, age and origin before colour and subject.
FIRST = ("European", "American", "international", "new", "old", "small", "big", "beautiful")


@dataclass(frozen=True, slots=True, eq=False)
class Thing:
    """A noun with "the" or "a", up to two adjectives in English order, and what it is about."""

    noun: Noun
    adjectives: tuple[Adjective, ...]
    determiner: tree.Determiner = "the"
    plural: bool = False
    about: Thing | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """Something that was done to a thing in a month."""

    subject: Thing
    participle: Participle
    month: str
    year: int


class AgreementSampler:
    """A sampler of events with an exact number of English words."""

    def __init__(self, stream: RandomStream):
        self._stream = stream
        self._nouns, self._adjectives = agreement_words()

    def event(self, words: int) -> Event:
        """Return an event of `words` English words, within `LENGTHS`."""
        stream = self._stream
        left = words - EVENT
        about = left > 4  # "the new economic agreement" has four words, "on the area" three more
        inner = stream.between(max(0, left - 7), min(2, left - 5)) if about else 0
        subject = self._subject(left - 2 - (3 + inner if about else 0), about=about, inner=inner)
        participles = [each for each in PARTICIPLES if subject.noun.kind in each.nouns]
        month = stream.choose(tuple(MONTHS))
        return Event(subject, stream.choose(participles), month, stream.between(*YEARS))

    def _subject(self, adjectives: int, *, about: bool, inner: int) -> Thing:
        """Return what something is done to; only a text is about something."""
        stream = self._stream
        kind = "text" if about or stream.chance(50) else "thing"
        plural = stream.chance(25)
        indefinite = kind == "thing" and not plural and stream.chance(30)
        return Thing(
            self._noun(kind),
            self._described(kind, adjectives),
            "a" if indefinite else "the",
            plural,
            Thing(self._noun("area"), self._described("area", inner)) if about else None,
        )

    def _noun(self, kind: str) -> Noun:
        return self._stream.choose([noun for noun in self._nouns if noun.kind == kind])

    def _described(self, kind: str, count: int) -> tuple[Adjective, ...]:
        """Return none, one, or one of each sort in English order."""
        stream = self._stream
        fitting = [each for each in self._adjectives if kind in each.nouns]
        sorts = [
            [each for each in fitting if (each.english in FIRST) == first]
            for first in (True, False)
        ]
        if count == 1:
            return (stream.choose(stream.choose(sorts)),)
        return tuple(stream.choose(sort) for sort in sorts) if count else ()


def english_words(event: Event) -> list[tree.LinkedWord]:
    """Return the words of an event in English."""
    return [
        *_english_thing(event.subject),
        tree.LinkedWord("were" if event.subject.plural else "was", ((event, "passive"),)),
        tree.LinkedWord(event.participle.english, ((event, "participle"),)),
        tree.LinkedWord("in", ((event, "in"),)),
        tree.LinkedWord(event.month, ((event, "month"),)),
        tree.LinkedWord(str(event.year), ((event, "year"),)),
    ]


def _english_thing(thing: Thing) -> Iterator[tree.LinkedWord]:
    noun = thing.noun.english_plural if thing.plural else thing.noun.english
    following = thing.adjectives[0].english if thing.adjectives else noun
    an = thing.determiner == "a" and following[0] in "aeiou"
    yield tree.LinkedWord("an" if an else thing.determiner, ((thing, "determiner"),))
    for adjective in thing.adjectives:
        yield tree.LinkedWord(adjective.english, ((thing, adjective.english),))
    yield tree.LinkedWord(noun, ((thing, "noun"),))
    if thing.about is not None:
        yield tree.LinkedWord("on", ((thing, "on"),))
        yield from _english_thing(thing.about)


def french_words(event: Event) -> list[tree.LinkedWord]:
    """Return the words of an event in French; the participle agrees with its subject."""
    plural = event.subject.plural
    agreement = forms.noun_agreement(event.subject.noun, plural)
    form = event.participle.french + "e" * agreement.feminine + "s" * plural
    return french.join(
        [
            *_french_thing(event.subject),
            *tree.words("ont été" if plural else "a été", (event, "passive")),
            tree.LinkedWord(form, ((event, "participle"),)),
            tree.LinkedWord("en", ((event, "in"),)),
            tree.LinkedWord(MONTHS[event.month], ((event, "month"),)),
            tree.LinkedWord(str(event.year), ((event, "year"),)),
        ]
    )


def _french_thing(thing: Thing) -> Iterator[tree.LinkedWord]:
    """Yield a thing: small, old and new before the noun, others after it in reverse order."""
    agreement = forms.noun_agreement(thing.noun, thing.plural)
    noun = forms.noun_form(thing.noun, thing.plural)
    before = [each for each in thing.adjectives if each.french_before]
    after = [each for each in reversed(thing.adjectives) if not each.french_before]
    described = [
        *(_adjective(thing, each, agreement, noun) for each in before),
        tree.LinkedWord(noun, ((thing, "noun"),)),
        *(_adjective(thing, each, agreement, "") for each in after),
    ]
    article = forms.determiner_form(thing.determiner, agreement, following=described[0].text)
    yield tree.LinkedWord(article, ((thing, "determiner"),))
    yield from described
    if thing.about is not None:
        yield tree.LinkedWord("sur", ((thing, "on"),))
        yield from _french_thing(thing.about)


def _adjective(
    thing: Thing, adjective: Adjective, agreement: forms.Agreement, following: str
) -> tree.LinkedWord:
    form = forms.adjective_form(adjective, agreement, following=following)
    return tree.LinkedWord(form, ((thing, adjective.english),))
