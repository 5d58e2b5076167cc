"""Draws whole sentences of an exact number of English words."""

from __future__ import annotations

from typing import Literal

from regard.corpora.grammar.clauses import LONGEST_CLAUSE, Clauses
from regard.corpora.grammar.lexicon import Lexicon
from regard.corpora.grammar.random_stream import RandomStream
from regard.corpora.grammar.realise import Language
from regard.corpora.grammar.selection import Selection
from regard.corpora.grammar.shares import share
from regard.corpora.grammar.style import FULL, SMALL
from regard.corpora.grammar.tree import Clause, Conjunction, Sentence, Subordinate, Tense

SHORTEST_CLAUSE = 3
SHORTEST_FRONTED = 16
"""From so many words on, a sentence may begin with a subordinate clause."""


class Sampler:
    """Draws sentences that a language can say."""

    def __init__(self, lexicon: Lexicon, stream: RandomStream, language: Language, *, small: bool):
        self._stream = stream
        self._style = SMALL if small else FULL
        self._selection = Selection(lexicon)
        self._clauses = Clauses(self._selection, stream, self._style)
        conjunctions = [each for each in self._style.conjunctions if each in language.conjunctions]
        self._conjunctions: dict[Tense, tuple[Conjunction, ...]] = {
            "present": tuple(conjunctions),
            # "if he slept" could be a wish or a habit.
            "past": tuple(each for each in conjunctions if each != "if"),
        }

    def sentence(self, words: int) -> Sentence:
        """Return a sentence of exactly `words` English words, 3 or more."""
        stream = self._stream
        tense: Tense = "past" if stream.chance(50) else "present"
        if words >= 8 and stream.chance(20):
            found = self._with_pronoun(words, tense)
            if found is not None:
                return found
        return self._plain(words, tense)

    def _plain(self, words: int, tense: Tense) -> Sentence:
        """Return main and subordinate clauses."""
        stream = self._stream
        count = self._number_of_clauses(words)
        fronted = count > 1 and self._style.fronted and stream.chance(30)
        rest = count - 1 - fronted
        after = min(rest, stream.below(3)) if self._style.fronted else stream.below(rest + 1)
        sizes = share(
            stream, words - (count - 1) - fronted, [(SHORTEST_CLAUSE, LONGEST_CLAUSE)] * count
        )
        mains = count - fronted - after
        conjunctions = self._draw_conjunctions(tense, after + fronted)
        first = (
            Subordinate(conjunctions.pop(), self._clauses.clause(sizes.pop(), tense))
            if fronted
            else None
        )
        clauses = [
            self._main(
                sizes.pop(), tense, first=index == 0 and not fronted, last=index == mains - 1
            )
            for index in range(mains)
        ]
        return Sentence(
            clauses=tuple(clauses),
            joints=self._joints(mains - 1),
            fronted=first,
            subordinates=tuple(
                Subordinate(conjunction, self._clauses.clause(sizes.pop(), tense))
                for conjunction in conjunctions
            ),
        )

    def _number_of_clauses(self, words: int) -> int:
        """Return how many clauses share the words, so that each has 3 to `LONGEST_CLAUSE`."""
        # With the joint before it, a clause takes up to LONGEST_CLAUSE + 1 words.
        fewest = -(-words // (LONGEST_CLAUSE - 1))
        most = max(fewest, (words - 1) // (SHORTEST_CLAUSE + 4))
        return self._stream.between(fewest, most)

    def _main(self, words: int, tense: Tense, *, first: bool, last: bool) -> Clause:
        """Return a main clause; only the last may hold a that-clause, which "and" would join."""
        return self._clauses.clause(words, tense, timed=first, content=last, they=first)

    def _draw_conjunctions(self, tense: Tense, count: int) -> list[Conjunction]:
        """Return conjunctions, a different one after each other where there are several."""
        drawn: list[Conjunction] = []
        options = self._conjunctions[tense]
        for _ in range(count):
            fresh = [each for each in options if each not in drawn[-1:]]
            drawn.append(self._stream.choose(fresh or options))
        return drawn

    def _joints(self, count: int) -> tuple[Literal["and", "but"], ...]:
        """Return "and", with one "but" among them at most."""
        joints: list[Literal["and", "but"]] = ["and"] * count
        if joints and self._style.fronted and self._stream.chance(40):
            joints[self._stream.below(count)] = "but"
        return tuple(joints)

    def _with_pronoun(self, words: int, tense: Tense) -> Sentence | None:
        """Return a sentence in which a pronoun stands for a noun of the clause before it."""
        return None
