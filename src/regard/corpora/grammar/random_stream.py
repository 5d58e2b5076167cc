"""Our own stream of random numbers, so that one seed gives the same bytes everywhere and always.

Python keeps only `random.random()` stable between versions; a corpus must not change with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


class RandomStream:
    """A splitmix64 generator: a counter in steps of the golden ratio, each value well mixed."""

    __slots__ = ("_state",)

    def __init__(self, seed: int):
        self._state = seed & MASK

    def next(self) -> int:
        """Return the next 64 random bits."""
        self._state = state = (self._state + GOLDEN) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        return state ^ (state >> 31)

    def below(self, limit: int) -> int:
        """Return a whole number from 0 to `limit` - 1."""
        return (self.next() * limit) >> 64

    def between(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """Return True in `percent` of a hundred draws."""
        return self.below(100) < percent

    def choose(self, items: Sequence[Item]) -> Item:
        """Return one of the items, each as likely as the others."""
        return items[(self.next() * len(items)) >> 64]
