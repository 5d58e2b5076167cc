"""The language-neutral sentence tree, and the tokens of its realisations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from regard.corpora.grammar.lexicon import Adjective, Adverb, Noun, Verb

Tense: TypeAlias = Literal["present", "past"]
Determiner: TypeAlias = Literal[
    "the", "a", "", "this", "every", "my", "his", "her", "our", "their", "two", "three", "four"
]
PronounWord: TypeAlias = Literal["I", "we", "he", "she", "it", "they"]
Preposition: TypeAlias = Literal[
    "in", "on", "with", "without", "near", "behind", "beside", "under", "for", "to", "from"
]
Conjunction: TypeAlias = Literal["because", "although", "if", "before", "while"]
Modal: TypeAlias = Literal["can", "must", "should", "want"]
Degree: TypeAlias = Literal["", "very", "too"]

INDEFINITE: tuple[Determiner, ...] = ("a", "")


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """An adjective, perhaps with a degree: "very old"."""

    adjective: Adjective
    degree: Degree = ""


@dataclass(frozen=True, slots=True, eq=False)
class NounPhrase:
    """A noun with its modifiers; the determiner "" is the bare plural."""

    noun: Noun
    plural: bool = False
    determiner: Determiner = "the"
    description: Description | None = None
    place: PrepositionalPhrase | None = None
    relative: Clause | None = None

    @property
    def indefinite(self) -> bool:
        """Whether the phrase is indefinite: "a dog", "dogs"."""
        return self.determiner in INDEFINITE


@dataclass(frozen=True, slots=True, eq=False)
class Pronoun:
    """A personal pronoun, with its antecedent if it has one in the sentence."""

    word: PronounWord
    antecedent: NounPhrase | None = None

    @property
    def plural(self) -> bool:
        """Whether the pronoun is plural."""
        return self.word in ("we", "they")


@dataclass(frozen=True, slots=True, eq=False)
class RelativePronoun:
    """The relative pronoun of a noun, as subject or object of its relative clause."""

    noun: Noun
    plural: bool


@dataclass(frozen=True, slots=True, eq=False)
class Coordination:
    """Two noun phrases joined by "and"; always plural."""

    first: NounPhrase
    second: NounPhrase

    @property
    def plural(self) -> bool:
        """Always True."""
        return True


Nominal: TypeAlias = NounPhrase | Pronoun | RelativePronoun | Coordination


@dataclass(frozen=True, slots=True, eq=False)
class PrepositionalPhrase:
    """A preposition and its noun phrase."""

    preposition: Preposition
    complement: NounPhrase


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Clause:
    """One clause: an action with a verb, or a description of the subject without one.

    In a relative clause, `subject` or `object` is the RelativePronoun. `fronted` is a time adverb
    in first place, `time` one in its usual place; `content` is the that-clause of a verb of saying.
    """

    subject: Nominal
    tense: Tense
    verb: Verb | None = None
    predicate: Description | None = None
    object: Nominal | None = None
    modal: Modal | None = None
    negated: bool = False
    fronted: Adverb | None = None
    frequency: Adverb | None = None
    manner: Adverb | None = None
    place: Adverb | None = None
    time: Adverb | None = None
    phrases: tuple[PrepositionalPhrase, ...] = ()
    content: Clause | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Subordinate:
    """A clause under a conjunction."""

    conjunction: Conjunction
    clause: Clause


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SentenceTree:
    """[fronted subordinate ,] clause [and|but clause]... [subordinate]...

    The flat order is unambiguous: what follows a subordinate clause is subordinate too, and only
    the last main clause may have a that-clause.
    """

    clauses: tuple[Clause, ...]
    joints: tuple[Literal["and", "but"], ...] = ()
    fronted: Subordinate | None = None
    subordinates: tuple[Subordinate, ...] = ()


Cause: TypeAlias = tuple[object, str]
"""A node of the tree and the part it plays: (noun phrase, "noun"), (clause, "not")."""


class LinkedWord(NamedTuple):
    """A word of a realised sentence, with the causes that it shares with its translation."""

    text: str
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Language:
    """A target language: the function that realises a sentence, and the conjunctions it has.

    The causes of English words, to which the target languages refer:

    NounPhrase: "determiner", "noun"; Description: "degree", "adjective"; Pronoun and
    RelativePronoun: "pronoun"; Coordination: "and"; PrepositionalPhrase: "preposition";
    Clause: "finite" (the word that carries tense, and the verb after "do"), "verb" (the full verb),
    "not", "that", and "fronted", "frequency", "manner", "place", "time" for adverbs;
    Subordinate: "conjunction", "close" (the comma after a fronted one); Sentence: "joint 0",
    "joint 1" ... for its "and" and "but".
    """

    realise: Callable[[SentenceTree], list[LinkedWord]]
    conjunctions: tuple[Conjunction, ...]


def words(text: str, *causes: Cause) -> list[LinkedWord]:
    """Return the tokens of a text, all with the same causes."""
    if " " in text:
        return [LinkedWord(word, causes) for word in text.split(" ")]
    return [LinkedWord(text, causes)]
