"""Random segmentation into subwords, as a function of a seed alone (Kudo 2018).

SentencePiece draws by itself, but its generator differs from process to process. Here the numbers
come from a generator of ours, over the same lattice and with the same scores.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

MOST_WORDS, LONGEST_WORD = 200_000, 50  # whose lattices are kept
# SentencePiece gives a character outside the vocabulary this much less than the rarest subword.
UNKNOWN_PENALTY = 10.0


class Branches(NamedTuple):
    """What may follow at a place of a word: the share up to each subword, its end and its ids."""

    shares: list[float]
    ends: list[int]
    ids: list[tuple[int, ...]]


class SegmentationSampler:
    """Draws segmentations with probability P(x)^alpha / sum P^alpha, over all of them.

    `scores` are the log-probabilities of the subwords and `ids` their numbers; a character without
    a subword becomes its bytes, the first of which is `first_byte`. Subwords do not reach across
    the `mark` that begins a word, so words are drawn independently and their lattices are kept.
    """

    def __init__(
        self,
        scores: Mapping[str, float],
        ids: Mapping[str, int],
        *,
        mark: str,
        first_byte: int,
        alpha: float,
    ):
        self._scores = scores
        self._ids = ids
        self._first_byte = first_byte
        self._alpha = alpha
        self._longest = max(map(len, scores))
        self._unknown = min(scores.values()) - UNKNOWN_PENALTY
        across = any(mark in piece[1:] for piece in scores)
        self._word = re.compile(r".+" if across else f"{mark}[^{mark}]*|[^{mark}]+", re.DOTALL)
        self._kept: dict[str, list[Branches]] = {}

    def draw(self, text: str, random: Random) -> list[int]:
        """Return the ids of a text, in which the mark stands for every space."""
        found: list[int] = []
        for word in self._word.findall(text):
            lattice = self._kept.get(word)
            if lattice is None:
                lattice = self._lattice(word)
                if len(word) <= LONGEST_WORD and len(self._kept) < MOST_WORDS:
                    self._kept[word] = lattice
            place = 0
            while place < len(lattice):
                branches = lattice[place]
                number = bisect(branches.shares, random.random()) if len(branches.ends) > 1 else 0
                number = min(number, len(branches.ends) - 1)  # the last share may round below 1
                found += branches.ids[number]
                place = branches.ends[number]
        return found

    def _lattice(self, word: str) -> list[Branches]:
        """Return the branches at each place, by sums of P^alpha from the end backwards."""
        rest = [0.0] * (len(word) + 1)  # log sum of P^alpha over all segmentations from here on
        lattice = []
        for place in range(len(word) - 1, -1, -1):
            ends: list[int] = []
            ids: list[tuple[int, ...]] = []
            values: list[float] = []
            for end in range(place + 1, min(place + self._longest, len(word)) + 1):
                piece = word[place:end]
                score = self._scores.get(piece)
                if score is not None:
                    ids.append((self._ids[piece],))
                elif end == place + 1:
                    score = self._unknown
                    ids.append(tuple(self._first_byte + byte for byte in piece.encode()))
                else:
                    continue
                ends.append(end)
                values.append(self._alpha * score + rest[end])
            highest = max(values)
            powers = [math.exp(value - highest) for value in values]
            total = sum(powers)
            rest[place] = highest + math.log(total)
            shares, upto = [], 0.0
            for power in powers:
                upto += power / total
                shares.append(upto)
            lattice.append(Branches(shares, ends, ids))
        return lattice[::-1]
