"""What errors over many seeds say that one run cannot tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

TOP_SHARE = 0.01
"""The share of the test windows that is looked at for most of the error."""


def top_share(errors: np.ndarray) -> float:
    """Return the share of the squared errors that lies in the worst hundredth of the windows."""
    whole = float(errors.sum())
    worst = np.sort(errors)[-max(1, round(TOP_SHARE * len(errors))) :]
    return float(worst.sum()) / whole if whole else 0.0


@dataclass(frozen=True)
class SeedTest:
    """The test error of one seed, and the share of it in the worst hundredth of the windows."""

    seed: int
    mse: float
    top: float


@dataclass(frozen=True)
class SeedStudy:
    """Test errors over seeds, of a model and of the same without its attention, if it has one.

    Each seed draws the weights and, where the split is shuffled, which windows are the test.
    """

    tests: tuple[SeedTest, ...]
    without: tuple[SeedTest, ...]
    windows: int

    def to_dict(self) -> dict[str, Any]:
        """Return the quartiles and every error, as plain values."""
        rows = {"model": self.tests, "without_attention": self.without}
        return {
            "seeds": {
                name: {
                    "quartiles": quartiles(tests),
                    "mse": {str(test.seed): test.mse for test in tests},
                }
                for name, tests in rows.items()
                if tests
            }
        }

    def rows(self) -> Iterator[tuple[str, tuple[float, float, float]]]:
        """Yield what was trained, with its lower quartile, median and upper quartile."""
        yield ("with attention" if self.without else "model"), quartiles(self.tests)
        if self.without:
            yield "without attention", quartiles(self.without)

    @property
    def meaning(self) -> str:
        """Why a single run cannot compare, and in how many seeds attention was better."""
        top = float(np.median([test.top for test in (*self.tests, *self.without)]))
        most = max(1, round(TOP_SHARE * self.windows))
        text = (
            f"A single run says little: {most} of its {self.windows} test windows hold {top:.0%} "
            "of the squared error (median), and each seed draws others. Compare medians."
        )
        if not self.without:
            return text
        pairs = zip(self.tests, self.without, strict=True)
        better = sum(one.mse < other.mse for one, other in pairs)
        return f"{text} Attention has the lower error with {better} of {len(self.tests)} seeds."

    def lines(self) -> Iterator[str]:
        """Yield a table of medians and quartiles, and what it means."""
        yield f"{len(self.tests)} seeds, for weights and split"
        yield f"{'test MSE':<22}{'median':>12}{'lower quartile':>18}{'upper quartile':>18}"
        for label, (low, median, high) in self.rows():
            yield f"{label:<22}{median:>12.3g}{low:>18.3g}{high:>18.3g}"
        yield self.meaning


def quartiles(tests: Sequence[SeedTest]) -> tuple[float, float, float]:
    """Return lower quartile, median and upper quartile of the errors."""
    low, median, high = np.quantile([test.mse for test in tests], [0.25, 0.5, 0.75])
    return float(low), float(median), float(high)
