"""The picture of a trained forecaster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from regard.pictures.series import draw_forecast, forecast_svg
from regard.recipes.forecast import TrainedForecaster


def draw_trained(trained: TrainedForecaster, path: Path) -> None:
    """Draw the series, the forecasts of the test windows and the attention behind them."""
    draw_forecast(path=path, **_picture(trained))


def trained_svg(trained: TrainedForecaster) -> str:
    """Return the same picture as SVG text, to stand in a page."""
    return forecast_svg(**_picture(trained))


def _picture(trained: TrainedForecaster) -> dict[str, Any]:
    """Return what the picture is drawn from, by the names of its parameters."""
    windows, recipe = trained.windows, trained.model.recipe
    found = trained.tested()
    series = windows.series
    # The numbers of the Fibonacci series are beyond reading; its scale is not.
    unit = (1.0, 0.0) if recipe.data.file is None else (series.high - series.low, series.low)
    return {
        "series": unit[1] + unit[0] * series.scaled,
        "places": np.sort(windows.test) + recipe.data.window,
        "forecast": unit[1] + unit[0] * found.values.numpy(),
        "weights": None if found.weights is None else found.weights.numpy(),
        "name": series.name if recipe.data.file is not None else f"{series.name}, scaled to [0, 1]",
        "joined": recipe.data.split == "time",
        "title": f"test MSE {trained.score.mse:.3g}, naive {trained.score.naive_mse:.3g} "
        "(scaled units)",
    }
