"""Batches of windows of a series, in an order that is a function of seed and epoch alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from regard.base.shapes import Float, Int, Tensor
from regard.batching.order import BatchOrder, BatchPosition, iterate_rows

PART = 4_096  # windows that are forecast at once


@dataclass(frozen=True)
class WindowBatch:
    """Windows of one length with the values that follow them."""

    inputs: Float[Tensor, "batch time *columns"]
    expected: Float[Tensor, "batch horizon"]

    @property
    def target_tokens(self) -> int:
        """How many values are to be forecast."""
        return self.expected.numel()

    def rows(self, chosen: Int[Tensor, "rows"]) -> WindowBatch:
        """Return these windows."""
        return WindowBatch(self.inputs[chosen], self.expected[chosen])

    def parts(self, chosen: Int[Tensor, "rows"], *, size: int = PART) -> Iterator[WindowBatch]:
        """Yield these windows, some at a time: a series may have millions."""
        for first in range(0, len(chosen), size):
            yield self.rows(chosen[first : first + size])

    @property
    def padding_share(self) -> float:
        """Windows are of one length: nothing is padded."""
        return 0.0


def iterate_windows(
    windows: WindowBatch,
    *,
    batch_size: int,
    seed: int,
    start: BatchPosition,
    rows: Int[Tensor, "rows"] | None = None,
) -> Iterator[tuple[BatchPosition, WindowBatch]]:
    """Yield batches of windows, or of these rows of them, without end, in an order by the seed."""
    time, horizon = windows.inputs.shape[1], windows.expected.shape[1]
    count = len(windows.inputs) if rows is None else len(rows)
    order = BatchOrder(
        [(time, horizon)] * count,
        token_budget=batch_size * (time + horizon),
        seed=seed,
    )

    def collate(chosen: Sequence[int]) -> WindowBatch:
        places = torch.tensor(chosen)
        return windows.rows(places if rows is None else rows[places])

    return iterate_rows(order, collate, start=start)
