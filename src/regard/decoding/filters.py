"""Filters of logits before a symbol is drawn: pure functions that compose in any order.

Each takes logits of many rows and returns new ones; what may not be drawn gets minus infinity. The
most probable symbol of a row always stays.
"""

from __future__ import annotations

import torch

from regard.base.shapes import Bool, Float, Tensor

REMOVED = float("-inf")


def with_temperature(
    logits: Float[Tensor, "rows vocab"], temperature: float
) -> Float[Tensor, "rows vocab"]:
    """Return logits / T: below 1 the probable becomes more so, above 1 less (Ackley et al. 1985).

    A temperature of 0 is the limit: only the most probable symbol of each row is left.
    """
    if not temperature >= 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if temperature == 0:
        return keep_top_k(logits, 1)
    # The greatest becomes zero first, so that no temperature is too small for the division.
    return (logits - logits.amax(dim=-1, keepdim=True)) / temperature


def keep_top_k(logits: Float[Tensor, "rows vocab"], count: int) -> Float[Tensor, "rows vocab"]:
    """Keep the `count` most probable symbols of each row (Fan et al. 2018, section 5.4).

    Of equally probable symbols those with the lowest numbers stay, so that there are never more.
    """
    if count < 1:
        raise ValueError(f"top_k ({count}) must be at least 1")
    if count >= logits.shape[-1]:
        return logits
    kept = _ranked(logits)[1][:, :count]
    return _only(logits, torch.zeros_like(logits, dtype=torch.bool).scatter_(-1, kept, True))


def keep_top_p(logits: Float[Tensor, "rows vocab"], mass: float) -> Float[Tensor, "rows vocab"]:
    """Keep the fewest symbols whose probabilities sum to `mass` (Holtzman et al. 2020, eq. 2)."""
    if not 0 < mass <= 1:
        raise ValueError(f"top_p ({mass}) must be above 0 and at most 1")
    if mass == 1:
        return logits
    ordered, order = _ranked(logits)
    probabilities = torch.softmax(ordered.double(), dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # what more probable symbols hold
    needed = before < mass
    needed[:, 0] = True
    return _only(logits, torch.zeros_like(needed).scatter_(-1, order, needed))


def keep_min_p(logits: Float[Tensor, "rows vocab"], share: float) -> Float[Tensor, "rows vocab"]:
    """Keep symbols at least `share` times as probable as the best (Nguyen et al. 2024)."""
    if not 0 <= share <= 1:
        raise ValueError(f"min_p ({share}) must be between 0 and 1")
    best = logits.amax(dim=-1, keepdim=True)
    return _only(logits, (logits - best).exp() >= share)


def penalise_repetition(
    logits: Float[Tensor, "rows vocab"], *, seen: Bool[Tensor, "rows vocab"], penalty: float
) -> Float[Tensor, "rows vocab"]:
    """Make symbols that were seen less probable (Keskar et al. 2019, section 4.1).

    A positive logit is divided by the penalty and a negative one multiplied, so both fall.
    """
    if not penalty > 0:
        raise ValueError(f"repetition_penalty ({penalty}) must be above 0")
    lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, lowered, logits)


def _ranked(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits of each row from the greatest on, equal ones in order, and their places."""
    return torch.sort(logits, dim=-1, descending=True, stable=True)


def _only(logits: Tensor, kept: Tensor) -> Tensor:
    return logits.masked_fill(~kept, REMOVED)
