"""How long an output may and must get: for each sentence alone, whatever its neighbours are."""

from __future__ import annotations

from regard.base.shapes import Int, Tensor


def length_limits(
    sources: Int[Tensor, "batch"], *, ratio: float, extra: int, most: int | None = None
) -> Int[Tensor, "batch"]:
    """Return the most symbols of each output by those of its source; both count the end mark.

    `most` does not count it.
    """
    limits = (sources * ratio).long() + extra
    return limits if most is None else limits.clamp(max=most + 1)


def least_lengths(
    sources: Int[Tensor, "batch"], *, ratio: float, least: int
) -> Int[Tensor, "batch"]:
    """Return the fewest symbols of each output by those of its source; both count the end mark.

    `least` does not count it.
    """
    return ((sources - 1) * ratio).ceil().long().clamp(min=least) + 1
