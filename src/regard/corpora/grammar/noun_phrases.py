"""Draws noun phrases and prepositional phrases of an exact number of words."""

from __future__ import annotations

from regard.corpora.grammar.lexicon import Noun
from regard.corpora.grammar.random_stream import RandomStream
from regard.corpora.grammar.selection import Selection
from regard.corpora.grammar.shares import share
from regard.corpora.grammar.style import Style
from regard.corpora.grammar.tree import (
    Coordination,
    Description,
    Determiner,
    NounPhrase,
    Preposition,
    PrepositionalPhrase,
)

LIGHT = 4
"""Most words of a noun phrase without phrase or clause: "the very old man"."""
SHORTEST_PHRASE, LONGEST_PHRASE = 3, 1 + LIGHT


class NounPhrases:
    """Draws noun phrases without clauses; the caller adds what makes them longer."""

    def __init__(self, selection: Selection, stream: RandomStream, style: Style):
        self._selection = selection
        self._stream = stream
        self._style = style

    def light(
        self,
        nouns: tuple[Noun, ...],
        words: int,
        determiners: tuple[Determiner, ...],
        *,
        counted: bool = True,
    ) -> NounPhrase:
        """Return determiner, perhaps degree and adjective, and noun, in 1 to 4 words.

        One word is a bare plural; `counted` allows a numeral.
        """
        stream = self._stream
        noun = stream.choose(nouns)
        determiner = stream.choose(determiners) if 1 < words < LIGHT else ""
        if words == LIGHT:
            determiner = stream.choose(determiners) or "the"
        room = words - 2 if determiner else words - 1
        description = self.description(noun.kind, degree=room == 2) if room else None
        plural = not determiner or (determiner not in ("a", "every") and stream.chance(35))
        if plural and determiner == "the" and counted and self._style.numerals:
            determiner = stream.choose(("the", "the", "the", "two", "three", "four"))
        return NounPhrase(noun, plural, determiner, description)

    def description(self, kind: str, *, degree: bool, predicate: bool = False) -> Description:
        """Return an adjective for a noun of this kind; "too" only after "is"."""
        stream = self._stream
        if not degree:
            return Description(stream.choose(self._selection.adjectives[kind]))
        if predicate and self._selection.predicates[kind] and stream.chance(50):
            return Description(stream.choose(self._selection.predicates[kind]), "too")
        return Description(stream.choose(self._selection.gradable[kind]), "very")

    def joined(self, nouns: tuple[Noun, ...], words: int) -> Coordination:
        """Return two definite noun phrases with "and" between them, in 5 to 9 words."""
        sizes = share(self._stream, words - 1, [(2, LIGHT), (2, LIGHT)])
        first = self.light(nouns, sizes[0], ("the",))
        others = tuple(noun for noun in nouns if noun is not first.noun) or nouns
        return Coordination(first, self.light(others, sizes[1], ("the",)))

    def placed(self, nouns: tuple[Noun, ...], words: int) -> NounPhrase:
        """Return a noun phrase with the place where it is, in 5 to 9 words."""
        head, place = share(self._stream, words, [(2, LIGHT), (SHORTEST_PHRASE, LONGEST_PHRASE)])
        phrase = self.light(nouns, head, ("the", "the", "a"))
        where = self.phrase(self._stream.choose(self._style.places), place)
        return NounPhrase(
            phrase.noun, phrase.plural, phrase.determiner, phrase.description, place=where
        )

    def phrase(self, preposition: Preposition, words: int) -> PrepositionalPhrase:
        """Return a preposition with a noun that makes sense after it, in 3 to 5 words."""
        nouns = self._selection.complements[preposition]
        complement = self.light(nouns, words - 1, self._style.determiners)
        return PrepositionalPhrase(preposition, complement)
