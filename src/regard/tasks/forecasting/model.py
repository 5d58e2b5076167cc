"""A trained forecaster: forecasts, attention, and the scale of its series."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int

from regard.base.errors import RegardError, RunError
from regard.compute.device import HOST, beside, moved, placed
from regard.corpora.series import future_times
from regard.models.forecaster import Forecast, Forecaster, build_forecaster
from regard.models.sizes import build_for
from regard.runs.run import Run, TrainedRun, quoted
from regard.scoring.measures import ForecastScore
from regard.tasks.forecasting.data import Windows
from regard.tasks.forecasting.seeds import SeedStudy
from regard.tasks.forecasting.settings import ForecastRecipe
from regard.training.checkpoint import load_weights

SCALE = "scale.json"
MOST_SHOWN = 2_000  # test windows in a picture
# The values of a window, or a row of values for each of its steps.
GivenWindow: TypeAlias = Sequence[float] | Sequence[Sequence[float]] | np.ndarray


class LoadedForecaster:
    """A model, its recipe, and the scale between its units and those of the series."""

    def __init__(
        self,
        *,
        model: Forecaster,
        recipe: ForecastRecipe,
        low: float,
        high: float,
        inputs: Sequence[tuple[float, float]] = (),
    ):
        self.model = model.requires_grad_(False)  # to be used, not trained
        self.recipe = recipe
        self.low = low
        self.high = high
        self._bounds = np.array([(low, high), *inputs])

    @property
    def attends(self) -> bool:
        """Whether there is attention to look at."""
        return self.model.attention is not None

    def scale(self, values: GivenWindow) -> Float[np.ndarray, "time *columns"]:
        """Return values in the model's units; there must be as many as its window holds."""
        window, columns = self.recipe.data.window, len(self._bounds)
        if len(values) != window:
            raise RegardError(
                f"{len(values)} values were given, but this model reads a window of {window}."
            )
        given = np.asarray(values, dtype=np.float64)
        if given.shape != (window, columns)[: given.ndim] or (columns > 1) != (given.ndim == 2):
            names = ", ".join(("the series", *self.recipe.data.inputs))
            raise RegardError(
                f"At each step this model reads {columns} value{'s' * (columns != 1)} ({names})."
            )
        bounds = self._bounds if given.ndim == 2 else self._bounds[0]
        return np.asarray((given - bounds[..., 0]) / (bounds[..., 1] - bounds[..., 0]))

    def forecast(self, values: GivenWindow) -> Float[np.ndarray, "horizon"]:
        """Return the values that should follow these, in the units of the series.

        A model with further inputs wants a row of values for each step.
        """
        scaled = self.run(self.scale(values)[None]).values[0].numpy()
        return self.low + (self.high - self.low) * scaled

    @torch.no_grad()
    def run(self, windows: Float[np.ndarray, "batch time *columns"]) -> Forecast:
        """Return forecasts and attention of scaled windows."""
        self.model.eval()
        found: Forecast = self.model(beside(self.model, torch.tensor(windows)), with_weights=True)
        return moved(found, HOST)

    @torch.no_grad()
    def values(
        self, windows: Windows, rows: Int[np.ndarray, "rows"]
    ) -> Float[np.ndarray, "rows horizon"]:
        """Return the scaled forecasts of these windows, of which there may be millions."""
        self.model.eval()
        parts = windows.all.parts(torch.from_numpy(rows))
        found = [self.model(beside(self.model, part.inputs)).values for part in parts]
        return torch.cat(found).cpu().numpy()


def load(folder: str | Path) -> LoadedForecaster:
    """Load the best forecaster of a run."""
    run = Run.open(Path(folder))
    recipe = run.recipe(ForecastRecipe)
    path = run.folder / SCALE
    try:
        scale = json.loads(path.read_text(encoding="utf-8"))
        low, high = float(scale["low"]), float(scale["high"])
        inputs = [(float(one["low"]), float(one["high"])) for one in scale.get("inputs", [])]
        if len(inputs) != len(recipe.data.inputs):
            raise ValueError(len(inputs))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} is missing or damaged: train again.") from error
    weights = run.weights()
    model = build_for(lambda: build(recipe), weights)
    load_weights(model, weights)
    model.eval()
    return LoadedForecaster(model=placed(model), recipe=recipe, low=low, high=high, inputs=inputs)


def build(recipe: ForecastRecipe) -> Forecaster:
    """Return the untrained forecaster of a recipe."""
    data = recipe.data
    return build_forecaster(
        recipe.model, window=data.window, horizon=data.horizon, inputs=1 + len(data.inputs)
    )


# Of the errors on the test part, which the interval around a forecast of the future is made of.
INTERVAL = (0.05, 0.95)


@dataclass(frozen=True)
class FutureForecast:
    """What should come after the end of a series, in its own units.

    Between `low` and `high` lie the forecasts with 90 % of the past errors added: those made at the
    same distance on the test part. It is as good as the future resembles it.
    """

    values: Float[np.ndarray, "horizon"]
    low: Float[np.ndarray, "horizon"]
    high: Float[np.ndarray, "horizon"]
    times: np.ndarray | None

    def labels(self) -> list[str]:
        """Return the date of each step, or how far ahead it is."""
        if self.times is None:
            return [f"+{step}" for step in range(1, len(self.values) + 1)]
        return [time_label(time) for time in self.times]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "next": self.values.tolist(),
            "next_low": self.low.tolist(),
            "next_high": self.high.tolist(),
            "next_at": self.labels(),
        }


def time_label(time: np.datetime64) -> str:
    """Return a date, with the time of day if that is not midnight."""
    text = str(time.astype("datetime64[m]"))
    return text.removesuffix("T00:00").replace("T", " ")


@dataclass(frozen=True)
class TrainedForecaster(TrainedRun):
    """A finished training: run, best model, windows, and the test."""

    model: LoadedForecaster
    windows: Windows
    score: ForecastScore
    study: SeedStudy | None = None

    def tested(self) -> Forecast:
        """Return forecasts and attention of the last test windows, in the order of the series."""
        return self.model.run(self.windows.inputs[self.shown])

    @property
    def shown(self) -> Int[np.ndarray, "shown"]:
        """The test windows that a picture has room for: the last ones, in order."""
        return np.sort(self.windows.test)[-MOST_SHOWN:]

    @property
    def pictures(self) -> list[Path]:
        """The pictures of the series with its forecasts."""
        return [self.run.folder / "forecast.png", self.run.folder / "forecast.svg"]

    def to_dict(self) -> dict[str, Any]:
        """Return where everything is, and the errors, as plain values."""
        pictures = [str(path) for path in self.pictures]
        seeds = self.study.to_dict() if self.study else {}
        return {**super().to_dict(), "pictures": pictures, **self.score.to_dict(), **seeds}

    def next_commands(self) -> list[str]:
        """Return what can be done with the run now."""
        return [f"regard look {quoted(self.run.folder)} --out forecast.png"]

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
            *self._seasonal_lines(),
            f"The model's squared error is {1 / better:.3g} times the naive one.",
            *(("", *self.study.lines()) if self.study else ()),
            *super().lines(),
        ]

    def _seasonal_lines(self) -> list[str]:
        score = self.score
        if score.seasonal_mse is None:
            return []
        name = f"seasonal ({score.season} steps)"
        return [f"{name:<22}{score.seasonal_mse:>22.4g}{score.seasonal_rmse:>16.4g}"]

    def upcoming(self) -> list[float]:
        """Return the forecast of what comes after the end of the series, in its own units."""
        return [float(value) for value in self.future().values]

    def future(self) -> FutureForecast:
        """Return the same forecast with an interval from the errors on the test part."""
        series, windows = self.windows.series, self.windows
        scaled = self.model.run(series.read[None, -windows.window :]).values[0].numpy()
        rows = np.sort(windows.test)
        errors = windows.expected[rows] - self.model.values(windows, rows)
        low, high = np.quantile(errors, INTERVAL, axis=0)
        times = None if series.times is None else future_times(series.times, len(scaled))
        return FutureForecast(
            values=series.in_units(scaled),
            low=series.in_units(scaled + low),
            high=series.in_units(scaled + high),
            times=times,
        )
