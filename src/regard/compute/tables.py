"""Tables that are computed on the processor, in double precision, and read on any device."""

from collections.abc import Callable

import torch

from regard.base.shapes import Float, Tensor
from regard.compute.device import on_host

LEAST_ROWS = 256


class RowTable:
    """Rows by their numbers; what is not the processor keeps those that it has needed.

    `rows(first, length, dtype)` computes some. Not every device has double precision, and sending
    rows at every step would take longer than the step.
    """

    def __init__(self, rows: Callable[[int, int, torch.dtype], Tensor]):
        self._rows = rows
        self._kept: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def on(
        self, beside: Tensor, *, first: int, length: int, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "{length} width"]:
        """Return rows on the device of a tensor, of its type or of another one."""
        dtype = beside.dtype if dtype is None else dtype
        if on_host(beside) or beside.is_meta:
            return self._rows(first, length, dtype)
        place = (beside.device, dtype)
        table, end = self._kept.get(place), first + length
        if table is None or len(table) < end:
            count = max(LEAST_ROWS, 1 << (end - 1).bit_length())
            table = self._kept[place] = self._rows(0, count, dtype).to(beside.device)
        return table[first:end]
