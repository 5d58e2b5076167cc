"""Batches of windows of a series, in an order that is a function of seed and epoch alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from regard.base.shapes import Float, Tensor
from regard.batching.order import BatchOrder, BatchPosition, iterate_rows


@dataclass(frozen=True)
class WindowBatch:
    """Windows of one length with the values that follow them."""

    inputs: Float[Tensor, "batch time *columns"]
    expected: Float[Tensor, "batch horizon"]

    @property
    def target_tokens(self) -> int:
        """How many values are to be forecast."""
        return self.expected.numel()

    @property
    def padding_share(self) -> float:
        """Windows are of one length: nothing is padded."""
        return 0.0


def iterate_windows(
    windows: WindowBatch, *, batch_size: int, seed: int, start: BatchPosition
) -> Iterator[tuple[BatchPosition, WindowBatch]]:
    """Yield batches of windows without end, in an order that depends on the seed."""
    time, horizon = windows.inputs.shape[1], windows.expected.shape[1]
    order = BatchOrder(
        [(time, horizon)] * len(windows.inputs),
        token_budget=batch_size * (time + horizon),
        seed=seed,
    )

    def collate(chosen: Sequence[int]) -> WindowBatch:
        rows = torch.tensor(chosen)
        return WindowBatch(windows.inputs[rows], windows.expected[rows])

    return iterate_rows(order, collate, start=start)
