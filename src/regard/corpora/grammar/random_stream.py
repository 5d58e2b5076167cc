"""Our own stream of random numbers, so that one seed gives the same bytes everywhere and always.

Python promises only `random.random()` to stay the same between versions, and a corpus must not
change with them. A hash of seed and counter is the same on every platform, and a block of numbers
at a time is far quicker than one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from hashlib import shake_128
from itertools import chain, count
from typing import TypeVar

Item = TypeVar("Item")

BLOCK = 1024
UNPACK = struct.Struct(f"<{BLOCK}I").unpack


class RandomStream:
    """Whole numbers drawn from SHAKE-128 over seed and block number."""

    __slots__ = ("_next",)

    def __init__(self, seed: int):
        self._next: Callable[[], int] = chain.from_iterable(_blocks(seed)).__next__

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


def _blocks(seed: int) -> Iterator[tuple[int, ...]]:
    """Yield blocks of 32-bit numbers without end."""
    for block in count():
        yield UNPACK(shake_128(f"{seed}:{block}".encode()).digest(4 * BLOCK))
