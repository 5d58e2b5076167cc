"""Translation probabilities of single tokens: the table t(f | e) of IBM model 1."""

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
