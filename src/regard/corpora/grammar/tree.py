"""The language-neutral sentence, and the words that a language makes of it."""

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
    """A noun with all that belongs to it; the determiner "" is the bare plural."""

    noun: Noun
    plural: bool = False
    determiner: Determiner = "the"
    description: Description | None = None
    place: PrepositionalPhrase | None = None
    relative: Clause | None = None

    @property
    def indefinite(self) -> bool:
        """Whether the phrase brings in something new: "a dog", "dogs"."""
        return self.determiner in INDEFINITE


@dataclass(frozen=True, slots=True, eq=False)
class Pronoun:
    """A personal pronoun; one that must find its noun names it as its antecedent."""

    word: PronounWord
    antecedent: NounPhrase | None = None

    @property
    def plural(self) -> bool:
        """Whether the pronoun stands for several."""
        return self.word in ("we", "they")


@dataclass(frozen=True, slots=True, eq=False)
class RelativePronoun:
    """The place that the described noun holds inside its relative clause (subject or object)."""

    noun: Noun
    plural: bool


@dataclass(frozen=True, slots=True, eq=False)
class Coordination:
    """Two noun phrases joined by "and"; always plural."""

    first: NounPhrase
    second: NounPhrase

    @property
    def plural(self) -> bool:
        """Two phrases are always several."""
        return True


Nominal: TypeAlias = NounPhrase | Pronoun | RelativePronoun | Coordination


@dataclass(frozen=True, slots=True, eq=False)
class PrepositionalPhrase:
    """A preposition and its noun phrase."""

    preposition: Preposition
    complement: NounPhrase


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Clause:
    """One clause. With a verb it is an action; without one it says what the subject is like.

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
class Sentence:
    """[fronted subordinate ,] clause [and|but clause]... [subordinate]...

    The flat order leaves no doubt where a clause belongs: what follows a subordinate clause is
    subordinate too, and only the last main clause may have a that-clause.
    """

    clauses: tuple[Clause, ...]
    joints: tuple[Literal["and", "but"], ...] = ()
    fronted: Subordinate | None = None
    subordinates: tuple[Subordinate, ...] = ()


Cause: TypeAlias = tuple[object, str]
"""A node of the tree and the part it plays: (noun phrase, "noun"), (clause, "not")."""


class Token(NamedTuple):
    """A word of a realised sentence, with the causes that it shares with its translation."""

    text: str
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Language:
    """A target language: how it says a sentence, and which conjunctions it can say.

    Causes that English gives its words, and that a language refers to:

    NounPhrase: "determiner", "noun"; Description: "degree", "adjective"; Pronoun and
    RelativePronoun: "pronoun"; Coordination: "and"; PrepositionalPhrase: "preposition";
    Clause: "finite" (the word that carries tense, and "do" beside its verb), "verb" (the full verb
    alone), "not", "that", and "fronted", "frequency", "manner", "place", "time" for adverbs;
    Subordinate: "conjunction", "close" (the comma after a fronted one); Sentence: "joint 0",
    "joint 1" ... for its "and" and "but".
    """

    realise: Callable[[Sentence], list[Token]]
    conjunctions: tuple[Conjunction, ...]


def words(text: str, *causes: Cause) -> list[Token]:
    """Return a text of one or more words, all with the same causes."""
    if " " in text:
        return [Token(word, causes) for word in text.split(" ")]
    return [Token(text, causes)]
