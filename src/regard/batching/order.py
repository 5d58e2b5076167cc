"""The order of training: batches of like length, shuffled by seed and epoch alone."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RunError, SettingsError
from regard.batching.batch import Batch, Example, by_length, collate, ends_of_batches, taken
from regard.corpora.parallel import even_rows

# Examples are sorted by length within pools of this many: large enough that the sentences of a
# batch are of nearly one length, small enough that a large corpus is mixed anew in each epoch.
POOL = 65_536
SORTED_AT_ONCE = 1 << 21  # of the numbers that are shuffled
# Batches whose sentences are cut into other subwords together. More of them pad less (Multi30k with
# alpha 0.2: 7.7 % with 64, 5.5 % with 128, 3.5 % with 256) and hold the training up for longer.
TOGETHER = 256
# Gives other examples for the rows of successive batches; is told their epoch and first number.
Redraw = Callable[[int, int, Sequence[Sequence[int]]], Sequence[Sequence[Example]]]


class Batches(Sequence[list[int]]):
    """The batches of an epoch in their order, each a list of row numbers."""

    def __init__(
        self, rows: NDArray[np.int32], bounds: NDArray[np.int64], order: NDArray[np.int64]
    ):
        """Batch `k` is the rows between two bounds, from that of number `order[k]` on."""
        self._rows = rows
        self._bounds = bounds
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> list[int]: ...

    @overload
    def __getitem__(self, place: slice) -> list[list[int]]: ...

    def __getitem__(self, place: int | slice) -> list[int] | list[list[int]]:
        if isinstance(place, slice):
            return [self[number] for number in range(len(self))[place]]
        first = int(self._order[place])
        rows: list[int] = self._rows[self._bounds[first] : self._bounds[first + 1]].tolist()
        return rows


@dataclass(frozen=True)
class MixedRows:
    """Several corpora in one epoch: some of their rows more than once, or a part, others anew."""

    sizes: tuple[int, ...]
    """How many rows each corpus has; they stand one after the other."""
    taken: tuple[int, ...]
    """How many rows of an epoch come from each."""
    seed: int

    def rows(self, epoch: int) -> NDArray[np.int32]:
        """Return the rows of an epoch, as a function of seed and epoch alone."""
        rows, first = [], 0
        for corpus, (size, wanted) in enumerate(zip(self.sizes, self.taken, strict=True)):
            times, part = divmod(wanted, size)
            rows += [np.arange(first, first + size, dtype=np.int32)] * times
            drawn = even_rows(size, part, seed=[self.seed, epoch, corpus]) if part else np.empty(0)
            rows.append((first + drawn).astype(np.int32))
            first += size
        return np.concatenate(rows)


class BatchOrder:
    """Which examples form which batch, in which order, as a function of seed and epoch.

    Nothing is remembered between epochs, so a training that stopped continues exactly. The random
    numbers are PCG64's own, whose stream NumPy keeps the same in all its versions. The order of an
    epoch takes four bytes an example.
    """

    def __init__(
        self,
        lengths: Sequence[tuple[int, int]] | NDArray[np.integer],
        *,
        token_budget: int,
        seed: int,
        short_first: bool = False,
        mixture: MixedRows | None = None,
    ):
        """Order examples of these source and target lengths, end marks included.

        A batch times its longest source and longest target together stays within `token_budget`;
        an example too long for that has a batch of its own. With `short_first` the first epoch
        goes from short to long sentences. With a `mixture`, an epoch has the rows that it says.
        """
        if token_budget < 1:
            raise SettingsError(f"token_budget ({token_budget}) must be at least 1")
        if seed < 0:
            raise SettingsError(f"seed ({seed}) must not be negative")
        if not len(lengths):
            raise SettingsError(
                "there is nothing to train on: no sentence pair, or none within the length limit"
            )
        self.lengths = lengths if isinstance(lengths, np.ndarray) else np.array(lengths, np.int64)
        self.token_budget = token_budget
        self.seed = seed
        self.short_first = short_first
        self.mixture = mixture
        self._kept: tuple[int, Batches] | None = None

    def batches(self, epoch: int) -> list[list[int]]:
        """Return the batches of an epoch as indices; every example is in one of them."""
        return list(self.epoch(epoch))

    def epoch(self, number: int) -> Batches:
        """Return the batches of an epoch; those of the last one asked for are kept."""
        if self._kept is None or self._kept[0] != number:
            self._kept = None
            self._kept = number, self._batches(number)
        return self._kept[1]

    def _batches(self, epoch: int) -> Batches:
        mixed = None if self.mixture is None else self.mixture.rows(epoch)
        count = len(self.lengths) if mixed is None else len(mixed)
        first_sorted = self.short_first and epoch == 0
        rows, ends = np.empty(count, np.int32), array("q", [0])
        place = 0
        for pool in _pools([self.seed, epoch], count, size=count if first_sorted else POOL):
            if mixed is not None:
                pool = mixed[pool].astype(np.int64)
            lengths = self.lengths[pool].astype(np.int64)
            ordered = by_length(lengths)  # ties stay as they were shuffled
            rows[place : place + len(pool)] = pool[ordered]
            cuts = ends_of_batches(lengths[ordered], token_budget=self.token_budget)
            ends.extend(place + end for end in cuts)
            place += len(pool)
        bounds = np.array(ends)
        batches = len(bounds) - 1
        if first_sorted:
            return Batches(rows, bounds, np.arange(batches))
        random = np.random.PCG64([self.seed, epoch]).advance(count)
        return Batches(rows, bounds, _sorted(random.random_raw(batches)))


def _pools(seed: Sequence[int], count: int, *, size: int) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers from 0 to count - 1 in random order, in pools of one size.

    A number's place is the rank of its random key. Of many numbers the keys are drawn several
    times, each time to sort those of another range, so that the memory does not grow.
    """
    ranges = -(-count // SORTED_AT_ONCE)
    waiting = np.empty(0, np.int64)
    for part in range(ranges):
        found = _ranked(seed, count, part=part, parts=ranges)
        waiting = np.concatenate([waiting, found]) if len(waiting) else found
        last = part + 1 == ranges
        while len(waiting) >= size or (last and len(waiting)):
            yield waiting[:size]
            waiting = waiting[size:]


def _ranked(seed: Sequence[int], count: int, *, part: int, parts: int) -> NDArray[np.int64]:
    """Return the numbers whose keys are in a range, the one of the lowest key first."""
    random = np.random.PCG64(seed)
    if parts == 1:
        return _sorted(random.random_raw(count))
    low, high = (np.uint64((one << 64) // parts) for one in (part, min(part + 1, parts - 1)))
    numbers, keys = [], []
    for first in range(0, count, SORTED_AT_ONCE):
        drawn = random.random_raw(min(SORTED_AT_ONCE, count - first))
        inside = drawn >= low
        if part + 1 < parts:
            inside &= drawn < high
        places = np.flatnonzero(inside)
        numbers.append(places + first)
        keys.append(drawn[places])
    joined: NDArray[np.int64] = np.concatenate(numbers)[_sorted(np.concatenate(keys))]
    return joined


def _sorted(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the places of keys, the lowest first; equal ones stay in their order."""
    return np.argsort(keys, kind="stable").astype(np.int64, copy=False)


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
        batches = order.epoch(number)
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
        return collate(taken(examples, rows))

    if redraw is None:
        return iterate_rows(order, plain, start=start)

    def epoch_of(number: int) -> Epoch[Batch]:
        batches = order.epoch(number)
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
