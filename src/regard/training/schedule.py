"""Learning rates as functions of the step."""

from __future__ import annotations

import math
from collections.abc import Callable

# Each takes the share of the training that is done (0 to 1), the step and the warm-up, and returns
# a factor. The share is by steps or by time, so a training that ends early has also decayed.
SCHEDULES: dict[str, Callable[[float, int, int], float]] = {
    "constant": lambda done, step, warmup: 1.0,
    "linear": lambda done, step, warmup: 1.0 - done,
    "cosine": lambda done, step, warmup: 0.01 + 0.99 * (1 + math.cos(math.pi * done)) / 2,
    # Vaswani et al. 2017, section 5.3, scaled so that the peak is 1 at the end of the warm-up.
    "inverse-sqrt": lambda done, step, warmup: math.sqrt(max(warmup, 1) / max(step, 1)),
}


def learning_rate(step: int, done: float, *, schedule: str, peak: float, warmup: int) -> float:
    """Return the learning rate of an update (counted from 1): a linear rise, then the schedule."""
    if step < warmup:
        return peak * step / warmup
    return peak * SCHEDULES[schedule](min(1.0, done), step, warmup)
