"""Length penalties: by what a log-probability is divided, so that long outputs can compete.

All are at least 1 for one symbol or more and never fall with the length. Log-probabilities are
never positive and only fall, so an unfinished output of log-probability L that may have at most
`limit` symbols can never score better than L / divisor(limit): the bound by which a search stops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from regard.base.shapes import Float, Int, Tensor

DIVISORS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "none": lambda length, alpha: length**0.0,
    "average": lambda length, alpha: length**alpha,
    "wu": lambda length, alpha: ((5 + length) / 6) ** alpha,  # Wu et al. 2016, eq. 14
}


@dataclass(frozen=True)
class LengthPenalty:
    """log p / divisor(length), where the length counts the end mark."""

    kind: str = "average"
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in DIVISORS:
            raise ValueError(f"length penalty ({self.kind}) must be one of: {', '.join(DIVISORS)}")
        if not self.alpha >= 0:
            raise ValueError(f"length penalty: alpha ({self.alpha}) must not be negative")

    def divisor(self, lengths: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return what log-probabilities of outputs of these lengths are divided by."""
        return DIVISORS[self.kind](lengths.double(), self.alpha)
