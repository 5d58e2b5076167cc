"""The order of training: batches of like length, shuffled by seed and epoch alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RunError, SettingsError
from regard.batching.batch import Batch, Example, by_length, collate, cut

# Examples are sorted by length within pools of this many: large enough that the sentences of a
# batch are of nearly one length, small enough that a large corpus is mixed anew in each epoch.
POOL = 65_536
# Batches whose sentences are cut into other subwords together. More of them pad less (Multi30k with
# alpha 0.2: 7.7 % with 64, 5.5 % with 128, 3.5 % with 256) and hold the training up for longer.
TOGETHER = 256
# Gives other examples for the rows of successive batches; is told their epoch and first number.
Redraw = Callable[[int, int, Sequence[Sequence[int]]], Sequence[Sequence[Example]]]


class BatchOrder:
    """Which examples form which batch, in which order, as a function of seed and epoch.

    Nothing is remembered between epochs, so a training that stopped continues exactly. The random
    numbers are PCG64's own, whose stream NumPy keeps the same in all its versions.
    """

    def __init__(
        self,
        lengths: Sequence[tuple[int, int]],
        *,
        token_budget: int,
        seed: int,
        short_first: bool = False,
    ):
        """Order examples of these source and target lengths, end marks included.

        A batch times its longest source and longest target together stays within `token_budget`;
        an example too long for that has a batch of its own. With `short_first` the first epoch
        goes from short to long sentences.
        """
        if token_budget < 1:
            raise SettingsError(f"token_budget ({token_budget}) must be at least 1")
        if seed < 0:
            raise SettingsError(f"seed ({seed}) must not be negative")
        if not lengths:
            raise SettingsError(
                "there is nothing to train on: no sentence pair, or none within the length limit"
            )
        self.lengths: NDArray[np.int64] = np.array(lengths, dtype=np.int64)
        self.token_budget = token_budget
        self.seed = seed
        self.short_first = short_first

    def batches(self, epoch: int) -> list[list[int]]:
        """Return the batches of an epoch as indices; every example is in one of them."""
        random = np.random.PCG64([self.seed, epoch])
        shuffled = _shuffle(random, len(self.lengths))
        if self.short_first and epoch == 0:
            return self._cut(shuffled)
        batches = []
        for start in range(0, len(shuffled), POOL):
            batches += self._cut(shuffled[start : start + POOL])
        return [batches[number] for number in _shuffle(random, len(batches))]

    def _cut(self, pool: NDArray[np.int64]) -> list[list[int]]:
        """Sort a pool by length and cut it into batches; the sort keeps ties as shuffled."""
        ordered = pool[by_length(self.lengths[pool])]
        return cut(ordered, self.lengths, token_budget=self.token_budget)


@dataclass(frozen=True)
class Position:
    """A place in the endless order of batches: the next batch to come is `batch` of `epoch`."""

    epoch: int = 0
    batch: int = 0


def iterate(
    order: BatchOrder,
    examples: Sequence[Example],
    start: Position,
    *,
    redraw: Redraw | None = None,
    redraws: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[Position, Batch]]:
    """Yield batches without end, each with the position after it, where a resumed run starts.

    `redraw` may give other examples for the rows of some successive batches; `redraws` is asked
    before each batch whether it is to do so.
    """
    epoch, first = start.epoch, start.batch
    while True:
        batches = order.batches(epoch)
        if first > len(batches):
            raise RunError(
                f"cannot continue at batch {first} of epoch {epoch}, which has {len(batches)} "
                "batches: the training data or the token budget has changed"
            )
        found: Iterable[Sequence[Example]] = (
            ([examples[row] for row in rows] for rows in batches[first:])
            if redraw is None
            else _redrawn(examples, batches, Position(epoch, first), redraw, redraws)
        )
        for number, batch in enumerate(found, start=first + 1):
            done = number == len(batches)
            yield Position(epoch + 1, 0) if done else Position(epoch, number), collate(batch)
        epoch, first = epoch + 1, 0


def _redrawn(
    examples: Sequence[Example],
    batches: Sequence[Sequence[int]],
    start: Position,
    redraw: Redraw,
    redraws: Callable[[], bool],
) -> Iterator[Sequence[Example]]:
    """Yield the batches of an epoch from a position on, drawn a few at a time if at all.

    The few are the same wherever one begins.
    """
    few: Sequence[Sequence[Example]] = ()
    drawn = -1
    for number in range(start.batch, len(batches)):
        first = number - number % TOGETHER
        if not redraws():
            yield [examples[row] for row in batches[number]]
            continue
        if first != drawn:
            few = redraw(start.epoch, first, batches[first : first + TOGETHER])
            drawn = first
        yield few[number - first]


def _shuffle(random: np.random.PCG64, count: int) -> NDArray[np.int64]:
    """Return the numbers from 0 to count - 1 in random order."""
    return np.argsort(random.random_raw(count), kind="stable").astype(np.int64)


AnyBatch = TypeVar("AnyBatch")


def endless(
    order: BatchOrder, collate: Callable[[Sequence[int]], AnyBatch], *, start: Position
) -> Iterator[tuple[Position, AnyBatch]]:
    """Yield what `collate` makes of the rows of each batch, with the position after it."""
    epoch, first = start.epoch, start.batch
    while True:
        batches = order.batches(epoch)
        for number in range(first, len(batches)):
            done = number + 1 == len(batches)
            after = Position(epoch + 1, 0) if done else Position(epoch, number + 1)
            yield after, collate(batches[number])
        epoch, first = epoch + 1, 0
