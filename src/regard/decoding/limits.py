"""How long an output may and must get: for each sentence alone, whatever its neighbours are."""

from __future__ import annotations

from regard.base.shapes import Bool, Int, Tensor


def length_limits(
    mask: Bool[Tensor, "batch source"], *, ratio: float, extra: int, most: int | None = None
) -> Int[Tensor, "batch"]:
    """Return the most symbols of each output, end mark included; `most` counts without it."""
    limits = (mask.sum(dim=1) * ratio).long() + extra
    return limits if most is None else limits.clamp(max=most + 1)


def least_lengths(
    mask: Bool[Tensor, "batch source"], *, ratio: float, least: int
) -> Int[Tensor, "batch"]:
    """Return the fewest symbols of each output, end mark included; `least` counts without it."""
    return ((mask.sum(dim=1) - 1) * ratio).ceil().long().clamp(min=least) + 1
