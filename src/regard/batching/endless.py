"""Batches without end, in an order that resumes exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from regard.batching.order import BatchOrder, Position

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
