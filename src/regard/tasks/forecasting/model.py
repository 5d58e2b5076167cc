"""A trained forecaster: forecasts, attention, and the scale of its series."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from regard.base.errors import RegardError, RunError
from regard.models.forecaster import Forecast, Forecaster, build_forecaster
from regard.runs.run import Run, TrainedRun
from regard.scoring.measures import ForecastScore
from regard.tasks.forecasting.data import Windows
from regard.tasks.forecasting.settings import ForecastRecipe
from regard.training.checkpoint import load_weights

SCALE = "scale.json"


class LoadedForecaster:
    """A model, its recipe, and the scale between its units and those of the series."""

    def __init__(self, *, model: Forecaster, recipe: ForecastRecipe, low: float, high: float):
        self.model = model.requires_grad_(False)  # to be used, not trained
        self.recipe = recipe
        self.low = low
        self.high = high

    @property
    def attends(self) -> bool:
        """Whether there is attention to look at."""
        return self.model.attention is not None

    def scale(self, values: Sequence[float]) -> Float[np.ndarray, "time"]:
        """Return values in the model's units; there must be as many as its window holds."""
        window = self.recipe.data.window
        if len(values) != window:
            raise RegardError(
                f"{len(values)} values were given, but this model reads a window of {window}."
            )
        return (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)

    def forecast(self, values: Sequence[float]) -> Float[np.ndarray, "horizon"]:
        """Return the values that should follow these, in the units of the series."""
        scaled = self.run(self.scale(values)[None]).values[0].numpy()
        return self.low + (self.high - self.low) * scaled

    @torch.no_grad()
    def run(self, windows: Float[np.ndarray, "batch time"]) -> Forecast:
        """Return forecasts and attention of scaled windows."""
        self.model.eval()
        found: Forecast = self.model(torch.tensor(windows), with_weights=True)
        return found


def load(folder: str | Path) -> LoadedForecaster:
    """Load the best forecaster of a run."""
    run = Run.open(Path(folder))
    recipe = run.recipe(ForecastRecipe)
    path = run.folder / SCALE
    try:
        scale = json.loads(path.read_text(encoding="utf-8"))
        low, high = float(scale["low"]), float(scale["high"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is missing or damaged: train again.") from error
    model = build_forecaster(recipe.model, window=recipe.data.window, horizon=recipe.data.horizon)
    load_weights(model, run.weights())
    model.eval()
    return LoadedForecaster(model=model, recipe=recipe, low=low, high=high)


def build(recipe: ForecastRecipe) -> Forecaster:
    """Return the untrained forecaster of a recipe."""
    return build_forecaster(recipe.model, window=recipe.data.window, horizon=recipe.data.horizon)


@dataclass(frozen=True)
class TrainedForecaster(TrainedRun):
    """A finished training: run, best model, windows, and the test."""

    model: LoadedForecaster
    windows: Windows
    score: ForecastScore

    def tested(self) -> Forecast:
        """Return forecasts and attention of the test windows, in the order of the series."""
        return self.model.run(self.windows.inputs[np.sort(self.windows.test)])

    @property
    def pictures(self) -> list[Path]:
        """The pictures of the series with its forecasts."""
        return [self.run.folder / "forecast.png", self.run.folder / "forecast.svg"]

    def to_dict(self) -> dict[str, Any]:
        """Return where everything is, and the errors, as plain values."""
        pictures = [str(path) for path in self.pictures]
        return {**super().to_dict(), "pictures": pictures, **self.score.to_dict()}

    def lines(self) -> list[str]:
        """Return the test as a person reads it."""
        score = self.score
        better = score.naive_mse / score.mse if score.mse else float("inf")
        window = self.model.recipe.data.window
        return [
            f"{self.windows.series.name}: tested on {score.windows} windows of {window}",
            f"{'':<22}{'MSE (scaled to 0..1)':>22}{'typical error':>16}",
            f"{'model':<22}{score.mse:>22.4g}{score.rmse:>16.4g}",
            f"{'naive (last value)':<22}{score.naive_mse:>22.4g}{score.naive_rmse:>16.4g}",
            f"The model's squared error is {1 / better:.3g} times the naive one.",
            *super().lines(),
        ]

    def upcoming(self) -> list[float]:
        """Return the forecast of what comes after the end of the series, in its own units."""
        series, loaded = self.windows.series, self.model
        scaled = loaded.run(series.scaled[None, -loaded.recipe.data.window :]).values[0]
        return [series.low + (series.high - series.low) * value for value in scaled.tolist()]
