"""What every language module offers: a sentence as words, each with what caused it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from regard.corpora.grammar.tree import Conjunction, Sentence

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
