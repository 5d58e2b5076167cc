"""Our own stream of random numbers, so that one seed gives the same bytes everywhere and always.

Python promises only `random.random()` to stay the same between versions, and a corpus must not
change with them. A hash of seed and counter is the same on every platform, and a block of numbers
at a time is far quicker than one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import shake_128
from typing import TypeVar

Item = TypeVar("Item")

BLOCK = 1024
UNPACK = struct.Struct(f"<{BLOCK}I").unpack


class RandomStream:
    """Whole numbers drawn from SHAKE-128 over seed and block number."""

    __slots__ = ("_block", "_numbers", "_seed")

    def __init__(self, seed: int):
        self._seed = seed
        self._block = 0
        self._numbers: list[int] = []

    def _next(self) -> int:
        """Return the next 32 random bits."""
        if not self._numbers:
            digest = shake_128(f"{self._seed}:{self._block}".encode()).digest(4 * BLOCK)
            self._numbers = list(UNPACK(digest))
            self._block += 1
        return self._numbers.pop()

    def below(self, limit: int) -> int:
        """Return a whole number from 0 to `limit` - 1."""
        return (self._next() * limit) >> 32

    def between(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + ((self._next() * (high - low + 1)) >> 32)

    def chance(self, percent: int) -> bool:
        """Return True in `percent` of a hundred draws."""
        return (self._next() * 100) >> 32 < percent

    def choose(self, items: Sequence[Item]) -> Item:
        """Return one of the items, each as likely as the others."""
        return items[(self._next() * len(items)) >> 32]
