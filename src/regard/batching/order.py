"""The order of training: batches of like length, shuffled by seed and epoch alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

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


def _shuffle(random: np.random.PCG64, count: int) -> NDArray[np.int64]:
    """Return the numbers from 0 to count - 1 in random order."""
    return np.argsort(random.random_raw(count), kind="stable").astype(np.int64)


AnyBatch = TypeVar("AnyBatch")


@dataclass(frozen=True)
class BatchPosition:
    """A place in the endless order of batches: the next batch to come is `batch` of `epoch`."""

    epoch: int = 0
    batch: int = 0


@dataclass(frozen=True)
class Epoch(Generic[AnyBatch]):
    """All training data once: how many batches it has, and what makes the one of a number."""

    batches: int
    make: Callable[[int], AnyBatch]


def endless(
    epoch_of: Callable[[int], Epoch[AnyBatch]], *, start: BatchPosition
) -> Iterator[tuple[BatchPosition, AnyBatch]]:
    """Yield batches without end, each with the position after it, where a resumed run starts."""
    number, first = start.epoch, start.batch
    if number < 0 or first < 0:
        raise RunError(
            f"The training cannot continue at batch {first} of epoch {number}: the checkpoint is "
            "damaged. Delete it to go on from an earlier one, or train again."
        )
    while True:
        epoch = epoch_of(number)
        if first > epoch.batches:
            raise RunError(
                f"The training cannot continue at batch {first} of epoch {number}, which has "
                f"{epoch.batches} batches: the data or the size of a batch has changed since the "
                "checkpoint was written. Restore them, or train into another folder."
            )
        for batch in range(first, epoch.batches):
            last = batch + 1 == epoch.batches
            yield (
                BatchPosition(number + 1, 0) if last else BatchPosition(number, batch + 1),
                epoch.make(batch),
            )
        number, first = number + 1, 0


def iterate_rows(
    order: BatchOrder, collate: Callable[[Sequence[int]], AnyBatch], *, start: BatchPosition
) -> Iterator[tuple[BatchPosition, AnyBatch]]:
    """Yield without end what `collate` makes of the rows of each batch."""

    def epoch_of(number: int) -> Epoch[AnyBatch]:
        batches = order.batches(number)
        return Epoch(len(batches), lambda batch: collate(batches[batch]))

    return endless(epoch_of, start=start)


def iterate(
    order: BatchOrder,
    examples: Sequence[Example],
    start: BatchPosition,
    *,
    redraw: Redraw | None = None,
    redraws: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[BatchPosition, Batch]]:
    """Yield batches of sentence pairs without end.

    `redraw` may give other examples for the rows of some successive batches; `redraws` is asked
    before each batch whether it is to do so.
    """

    def plain(rows: Sequence[int]) -> Batch:
        return collate([examples[row] for row in rows])

    if redraw is None:
        return iterate_rows(order, plain, start=start)

    def epoch_of(number: int) -> Epoch[Batch]:
        batches = order.batches(number)
        redrawn = _Redrawn(number, batches, redraw)

        def make(batch: int) -> Batch:
            return collate(redrawn(batch)) if redraws() else plain(batches[batch])

        return Epoch(len(batches), make)

    return endless(epoch_of, start=start)


class _Redrawn:
    """The batches of an epoch, drawn anew a few at a time; the few are the same from any start."""

    def __init__(self, epoch: int, batches: Sequence[Sequence[int]], redraw: Redraw):
        self._epoch = epoch
        self._batches = batches
        self._redraw = redraw
        self._first = -1
        self._few: Sequence[Sequence[Example]] = ()

    def __call__(self, batch: int) -> Sequence[Example]:
        first = batch - batch % TOGETHER
        if first != self._first:
            few = self._batches[first : first + TOGETHER]
            self._few, self._first = self._redraw(self._epoch, first, few), first
        return self._few[batch - first]
