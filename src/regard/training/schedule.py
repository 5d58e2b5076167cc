"""Learning rates as functions of the step."""

from __future__ import annotations

import math
from collections.abc import Callable

# Each takes the progress after warm-up (0 to 1), the step and the warm-up, and returns a factor.
SCHEDULES: dict[str, Callable[[float, int, int], float]] = {
    "constant": lambda progress, step, warmup: 1.0,
    "linear": lambda progress, step, warmup: 1.0 - progress,
    "cosine": lambda progress, step, warmup: 0.01 + 0.99 * (1 + math.cos(math.pi * progress)) / 2,
    # Vaswani et al. 2017, section 5.3, scaled so that the peak is 1 at the end of the warm-up.
    "inverse-sqrt": lambda progress, step, warmup: math.sqrt(max(warmup, 1) / max(step, 1)),
}


def learning_rate(step: int, *, schedule: str, peak: float, warmup: int, steps: int) -> float:
    """Return the learning rate of an update (counted from 1): a linear rise, then the schedule."""
    if step < warmup:
        return peak * step / warmup
    progress = min(1.0, (step - warmup) / max(1, steps - warmup))
    return peak * SCHEDULES[schedule](progress, step, warmup)
