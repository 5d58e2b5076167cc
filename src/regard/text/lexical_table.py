"""Translation probabilities of single tokens: the table t(f | e) of IBM model 1."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class LexicalTable:
    """The probability t(f | e) of each target token f that occurs with a source token e.

    The entries of source token e are those from `begins[e]` to `begins[e + 1]`, most probable
    first.
    """

    begins: Ids
    targets: Ids
    probabilities: NDArray[np.float64]

    def best(self, source: int, count: int) -> list[int]:
        """Return the most probable target tokens of a source token."""
        first = int(self.begins[source])
        last = min(int(self.begins[source + 1]), first + count)
        found: list[int] = self.targets[first:last].tolist()
        return found


def learn_lexical_table(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    source_size: int,
    target_size: int,
    rounds: int = 5,
) -> LexicalTable:
    """Return the table, learned by expectation maximisation (Brown et al. 1993, section 4.1).

    At first all target tokens are equally probable; more than five rounds change little.
    """
    codes, target_places, place_count = _co_occurrences(pairs, target_size)
    links, number = np.unique(codes, return_inverse=True)  # each link, and the link of a place
    sources = links // target_size
    table = np.full(len(links), 1.0 / target_size)
    for _ in range(rounds):
        chances = table[number]
        # E step: each target token is divided among the source tokens of its sentence.
        whole = np.bincount(target_places, weights=chances, minlength=place_count)
        counts = np.bincount(number, weights=chances / whole[target_places], minlength=len(links))
        totals = np.bincount(sources, weights=counts, minlength=source_size)
        table = counts / totals[sources]
    order = np.lexsort((-table, sources))
    begins = np.searchsorted(sources[order], np.arange(source_size + 1))
    return LexicalTable(begins, links[order] % target_size, table[order])


def _co_occurrences(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], target_size: int
) -> tuple[Ids, Ids, int]:
    """Return a code for each token pair of a sentence pair, and the position of its target."""
    codes: list[Ids] = [np.empty(0, np.int64)]
    places: list[Ids] = [np.empty(0, np.int64)]
    place = 0
    for source, target in pairs:
        left, right = np.asarray(source, np.int64), np.asarray(target, np.int64)
        codes.append((left[:, None] * target_size + right).ravel())
        places.append(np.tile(np.arange(place, place + len(right)), len(left)))
        place += len(right)
    return np.concatenate(codes), np.concatenate(places), place


FREQUENT = 30_000  # words of each side that are told apart
FEWEST = 3  # occurrences of such a word
RARE = 0  # the number of all others


@dataclass(frozen=True)
class WordTable:
    """How much more probable each target word is with a source word than by itself."""

    sources: dict[str, int]
    targets: dict[str, int]
    evidence: dict[tuple[int, int], float]
    """log t(f | e) / p(f) of words that occurred together, where it is above 0."""
    missing: float = -3.0
    """What a target word counts that has no partner in the source."""

    def of(self, source: str, target: str) -> float:
        """Return the evidence that a word is translated by another; 0 if there is none."""
        numbers = self.sources.get(source, RARE), self.targets.get(target, RARE)
        return self.evidence.get(numbers, 0.0)

    def score(self, source: Sequence[str], target: Sequence[str]) -> float:
        """Return the mean evidence of the target words for their best partners; 0 without any."""
        known = [number for word in source if (number := self.sources.get(word, RARE))]
        found = [
            max((self.evidence.get((one, number), 0.0) for one in known), default=0.0)
            or self.missing
            for word in target
            if (number := self.targets.get(word, RARE))
        ]
        return sum(found) / len(found) if found else 0.0


def learn_word_table(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]], *, rounds: int = 4
) -> WordTable:
    """Return the table of the frequent words of tokenised sentence pairs."""
    sources = _numbered([source for source, _ in pairs])
    targets = _numbered([target for _, target in pairs])
    ids = [
        ([sources.get(word, RARE) for word in one], [targets.get(word, RARE) for word in two])
        for one, two in pairs
    ]
    sizes = {"source_size": len(sources) + 1, "target_size": len(targets) + 1}
    table = learn_lexical_table(ids, **sizes, rounds=rounds)
    owners = np.repeat(np.arange(sizes["source_size"]), np.diff(table.begins))
    counts = np.bincount(
        np.concatenate([np.empty(0, np.int64), *(np.asarray(two, np.int64) for _, two in ids)]),
        minlength=sizes["target_size"],
    )
    share = counts / max(1, counts.sum())
    with np.errstate(divide="ignore"):
        gain = np.log(table.probabilities / share[table.targets])
    kept = (gain > 0) & (owners != RARE) & (table.targets != RARE)
    links = zip(owners[kept].tolist(), table.targets[kept].tolist(), strict=True)
    return WordTable(sources, targets, dict(zip(links, gain[kept].tolist(), strict=True)))


def _numbered(sentences: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return numbers, from 1, of the most frequent words that occur a few times."""
    counts = Counter(word for sentence in sentences for word in sentence)
    frequent = [word for word, count in counts.most_common(FREQUENT) if count >= FEWEST]
    return {word: number for number, word in enumerate(frequent, 1)}
