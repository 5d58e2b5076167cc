"""Which target tokens translate a source token: the table t(f | e) of IBM's first model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class LexicalTable:
    """For each pair of tokens that occur together, how probable the target token is.

    `begins[e]` to `begins[e + 1]` are the entries of source token e, the most probable first.
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
    """Learn the table by expectation maximisation (Brown et al. 1993, section 4.1).

    It begins with all target tokens equally probable; five rounds leave little to gain.
    """
    codes, target_places, place_count = _co_occurrences(pairs, target_size)
    links, number = np.unique(codes, return_inverse=True)  # each link, and the link of a place
    sources = links // target_size
    table = np.full(len(links), 1.0 / target_size)
    for _ in range(rounds):
        chances = table[number]
        # The target token at a place is shared out among the source tokens of its sentence.
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
    """Return a code for every (source, target) of a pair, and the target's place in the corpus."""
    codes: list[Ids] = [np.empty(0, np.int64)]
    places: list[Ids] = [np.empty(0, np.int64)]
    place = 0
    for source, target in pairs:
        left, right = np.asarray(source, np.int64), np.asarray(target, np.int64)
        codes.append((left[:, None] * target_size + right).ravel())
        places.append(np.tile(np.arange(place, place + len(right)), len(left)))
        place += len(right)
    return np.concatenate(codes), np.concatenate(places), place
