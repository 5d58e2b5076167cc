"""Training a forecaster and using it: windows, model, loop and final test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float

from regard.base.errors import RegardError, RunError
from regard.batching.order import Position
from regard.batching.windows import WindowBatch, iterate_windows
from regard.models.forecaster import Forecast, Forecaster, build_forecaster
from regard.recipes.resume import limits_of, open_records, open_store
from regard.recipes.run import Run
from regard.recipes.series import Windows, read_windows
from regard.scoring.forecast import ForecastScore, score_forecast
from regard.settings.forecast import ForecastRecipe
from regard.training.checkpoint import load_weights
from regard.training.loop import Validation, fit, learning_rate
from regard.training.losses import LossSum
from regard.training.progress import Observer, Observers

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


@dataclass(frozen=True)
class TrainedForecaster:
    """A finished training: run, best model, windows, and the test."""

    run: Run
    model: LoadedForecaster
    windows: Windows
    score: ForecastScore

    def tested(self) -> Forecast:
        """Return forecasts and attention of the test windows, in the order of the series."""
        return self.model.run(self.windows.inputs[np.sort(self.windows.test)])


def train_forecaster(
    recipe: ForecastRecipe,
    run: Run,
    *,
    windows: Windows | None = None,
    observers: Sequence[Observer] = (),
) -> TrainedForecaster:
    """Train until the recipe's limits, from the newest checkpoint of the run if there is one."""
    windows = windows or read_windows(recipe.data)
    settings = recipe.training
    train = windows.batch(windows.train)
    # Without windows to choose by, the training windows themselves tell the best model.
    valid = windows.batch(windows.valid) if len(windows.valid) else train
    torch.manual_seed(settings.seed)
    model = build_forecaster(recipe.model, window=recipe.data.window, horizon=recipe.data.horizon)
    store = open_store(run, keep=settings.keep, fingerprint=windows.fingerprint())
    _save_scale(run, windows)
    fit(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), fused=True),
        loss_sum=partial(squared_error, model),
        batches_from=lambda epoch, batch: iterate_windows(
            train,
            batch_size=settings.batch_size,
            seed=settings.seed,
            start=Position(epoch=epoch, batch=batch),
        ),
        learning_rate=partial(
            learning_rate,
            schedule=settings.schedule,
            peak=settings.learning_rate,
            warmup=settings.warmup,
        ),
        validate=partial(_validate, model, valid),
        store=store,
        limits=limits_of(settings),
        observer=Observers([*open_records(run, store), *observers]),
        clip=settings.clip,
    )
    best = load_forecaster(run.folder)
    score = measure_forecaster(best, windows)
    (run.folder / "test.json").write_text(
        json.dumps(score.to_dict(), indent=1) + "\n", encoding="utf-8"
    )
    return TrainedForecaster(run, best, windows, score)


def squared_error(model: Forecaster, batch: WindowBatch) -> LossSum:
    """Return the summed squared error of a batch."""
    error = (model(batch.inputs).values - batch.expected).square().sum()
    return LossSum(error, error.detach())


def measure_forecaster(loaded: LoadedForecaster, windows: Windows) -> ForecastScore:
    """Return the error on the test windows, beside that of repeating the last value."""
    inputs = windows.inputs[windows.test]
    return score_forecast(
        loaded.run(inputs).values.numpy(),
        windows.expected[windows.test],
        last=inputs[:, -1],
        unit=windows.series.high - windows.series.low,
    )


def upcoming(trained: TrainedForecaster) -> list[float]:
    """Return the forecast of what comes after the end of the series, in its own units."""
    series, loaded = trained.windows.series, trained.model
    scaled = loaded.run(series.scaled[None, -loaded.recipe.data.window :]).values[0]
    return [series.low + (series.high - series.low) * value for value in scaled.tolist()]


def load_forecaster(folder: str | Path) -> LoadedForecaster:
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


def _validate(model: Forecaster, batch: WindowBatch) -> Validation:
    loss = float(squared_error(model, batch).nats) / batch.target_tokens
    return Validation(metrics={"loss": loss}, value=loss)


def _save_scale(run: Run, windows: Windows) -> None:
    scale = {"low": windows.series.low, "high": windows.series.high}
    (run.folder / SCALE).write_text(json.dumps(scale) + "\n", encoding="utf-8")
