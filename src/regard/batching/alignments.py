"""Word links of training pairs as links between tokens, for a head that is taught to align.

The links are given with the pairs, or found by IBM model 1: evidence of both directions is added,
words far from the diagonal count less, and the best links of each direction are symmetrised.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import overload

import numpy as np

from regard.base.protocols import Tokenizer
from regard.batching.batch import Example
from regard.corpora.parallel import SentencePair
from regard.scoring.alignment import Link, Links, symmetrise
from regard.text.lexical_table import WordTable, learn_word_table

# Word pairs that the tables are learned from: these take about a gigabyte for a moment.
MOST_CO_OCCURRENCES = 20_000_000
PUNCTUATION = "\"'“”„‚‘’«»‹›.,;:!?…()[]{}¡¿"
# Evidence (log odds) of a word that is the same on both sides, as names and numbers are.
SAME = 5.0
# Evidence that a link loses from one end of a sentence to the other (as Dyer et al. 2013).
DIAGONAL = 4.0
# Examples whose links are kept in memory; those of larger corpora are made again in each epoch.
MOST_KEPT = 500_000

WordLinks = Callable[[SentencePair], Links | None]


class WordAligner:
    """Links between the words of sentence pairs, by IBM model 1 in both directions."""

    def __init__(self, forward: WordTable, backward: WordTable):
        self._forward = forward
        self._backward = backward

    @classmethod
    def learn(cls, pairs: Sequence[SentencePair]) -> WordAligner:
        """Learn from pairs all over the corpus, as many as memory allows."""
        texts: list[tuple[list[str], list[str]]] = []
        left = MOST_CO_OCCURRENCES
        step = max(1, len(pairs) // MOST_KEPT)
        for number in range(0, len(pairs), step):
            words = keys_of(pairs[number].source), keys_of(pairs[number].target)
            left -= len(words[0]) * len(words[1])
            if left < 0 and texts:
                break
            texts.append(words)
        return cls(learn_word_table(texts), learn_word_table([(two, one) for one, two in texts]))

    def __call__(self, pair: SentencePair) -> frozenset[Link]:
        """Return links (source word, target word), counted from 0."""
        source, target = keys_of(pair.source), keys_of(pair.target)
        if not source or not target:
            return frozenset()
        evidence = np.array([[self._evidence(one, two) for one in source] for two in target])
        places = (np.arange(1, len(side) + 1) / len(side) for side in (source, target))
        across, down = places
        scores = evidence - DIAGONAL * np.abs(across - down[:, None])
        scores[evidence <= 0] = -np.inf
        forward = {
            (int(best), row)
            for row, best in enumerate(scores.argmax(axis=1))
            if np.isfinite(scores[row, best])
        }
        backward = {
            (column, int(best))
            for column, best in enumerate(scores.argmax(axis=0))
            if np.isfinite(scores[best, column])
        }
        return symmetrise(forward, backward)

    def _evidence(self, source: str, target: str) -> float:
        """Return how much more often two words are translations than chance has it (log odds)."""
        one, other = self._forward, self._backward
        found = one.evidence.get((one.sources.get(source, 0), one.targets.get(target, 0)), 0.0)
        found += other.evidence.get(
            (other.sources.get(target, 0), other.targets.get(source, 0)), 0.0
        )
        return max(found, SAME) if source == target else found


def keys_of(text: str) -> list[str]:
    """Return what tells the words of a text: without case, and without punctuation around them."""
    return [word.strip(PUNCTUATION) or word for word in text.lower().split()]


class TokenAligner:
    """Gives examples the links of their words, as links between their tokens."""

    def __init__(self, word_links: WordLinks, source: Tokenizer, target: Tokenizer):
        self._word_links = word_links
        self._source, self._target = source, target

    def __call__(self, pair: SentencePair, example: Example) -> Example:
        """Return the example with links; without them where nothing is known of its words."""
        links = self._word_links(pair)
        if links is None:
            return example
        sources = _places(self._source.word_of_piece(example.source))
        targets = _places(self._target.word_of_piece(example.target))
        found = array("i")
        for source, target in sorted(links):
            for row in targets.get(target, ()):
                for column in sources.get(source, ()):
                    found.extend((row, column))
        return replace(example, links=found)


def _places(words: Sequence[int]) -> dict[int, list[int]]:
    """Return the places of the tokens of each word."""
    found: dict[int, list[int]] = defaultdict(list)
    for place, word in enumerate(words):
        found[word].append(place)
    return found


class AlignedExamples(Sequence[Example]):
    """Examples that get their links when they are asked for."""

    def __init__(
        self, pairs: Sequence[SentencePair], examples: Sequence[Example], align: TokenAligner
    ):
        """Align these examples, which are of the pairs in the same order."""
        self.pairs, self.align = pairs, align
        self._examples = examples
        self._kept: dict[int, Example] = {}

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, row: int) -> Example: ...

    @overload
    def __getitem__(self, row: slice) -> list[Example]: ...

    def __getitem__(self, row: int | slice) -> Example | list[Example]:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        if row not in self._kept:
            found = self.align(self.pairs[row], self._examples[row])
            if len(self._kept) >= MOST_KEPT:
                return found
            self._kept[row] = found
        return self._kept[row]

    def __iter__(self) -> Iterator[Example]:
        return (self[row] for row in range(len(self)))
