"""How long an output may get: a limit of its own for each sentence, whatever its neighbours are."""

from __future__ import annotations

from regard.base.shapes import Bool, Int, Tensor


def length_limits(
    mask: Bool[Tensor, "batch source"], *, ratio: float, extra: int
) -> Int[Tensor, "batch"]:
    """Return the most symbols of each output, end mark included."""
    return (mask.sum(dim=1) * ratio).long() + extra
