"""The error of a forecast, compared with the naive forecast, which repeats the last value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class ForecastScore:
    """Mean squared errors of a model and of the naive forecast, in scaled units.

    `unit` is the length of the scaled interval [0, 1] in the units of the series.
    """

    mse: float
    naive_mse: float
    windows: int
    unit: float

    @property
    def rmse(self) -> float:
        """The typical error in the units of the series."""
        return float(np.sqrt(self.mse)) * self.unit

    @property
    def naive_rmse(self) -> float:
        """The typical error of the naive forecast in the units of the series."""
        return float(np.sqrt(self.naive_mse)) * self.unit

    def _repr_html_(self) -> str:
        """Return one line for a notebook."""
        return (
            f"<b>MSE {self.mse:.4g}</b>, of the naive forecast {self.naive_mse:.4g}; "
            f"{self.windows:,} windows"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "rmse": self.rmse, "naive_rmse": self.naive_rmse}


def score_forecast(
    forecast: Float[np.ndarray, "windows horizon"],
    expected: Float[np.ndarray, "windows horizon"],
    *,
    last: Float[np.ndarray, "windows"],
    unit: float,
) -> ForecastScore:
    """Score a forecast and the naive one, which repeats the last known value."""
    return ForecastScore(
        mse=float(np.mean((forecast - expected) ** 2)),
        naive_mse=float(np.mean((last[:, None] - expected) ** 2)),
        windows=len(expected),
        unit=unit,
    )
