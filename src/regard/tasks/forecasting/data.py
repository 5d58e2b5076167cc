"""The series of a recipe, cut into windows to train, to choose by and to test on."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from regard.base.errors import SettingsError
from regard.base.files import fingerprint
from regard.batching.windows import WindowBatch
from regard.corpora import series as series_data
from regard.runs.run import require_files
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.forecasting.settings import ForecastRecipe, SeriesSettings

# Fewer would leave one of the three parts empty.
FEWEST_WINDOWS = 10
MEMORY = Path("data")


@dataclass(frozen=True)
class Windows:
    """All windows of a series, and which of them belong to which part."""

    series: series_data.Series
    inputs: Float[np.ndarray, "windows window"]
    expected: Float[np.ndarray, "windows horizon"]
    train: Int[np.ndarray, "train"]
    valid: Int[np.ndarray, "valid"]
    test: Int[np.ndarray, "test"]

    def batch(self, rows: Int[np.ndarray, "rows"]) -> WindowBatch:
        """Return these windows as tensors."""
        return WindowBatch(torch.tensor(self.inputs[rows]), torch.tensor(self.expected[rows]))

    def fingerprint(self) -> str:
        """Return a short digest of series and split, which tells one from another."""
        return fingerprint([self.series.scaled, self.train, self.valid, self.test])


# Numbers in their order, or the name of a CSV file.
GivenSeries = Iterable[Any] | np.ndarray | str | Path


def given_windows(
    recipe: ForecastRecipe, data: GivenSeries | None
) -> tuple[ForecastRecipe, Windows]:
    """Return the windows of a series that is given in Python, or else of the recipe's."""
    if data is None:
        return recipe, read_windows(recipe.data)
    if isinstance(data, str | Path):
        named = recipe.data.model_copy(update={"file": str(data), "from_memory": False})
        return recipe.model_copy(update={"data": named}), read_windows(named)
    settings = recipe.data.model_copy(update={"from_memory": True, "file": None, "column": None})
    values = _numbers(data)
    series = _prepared(values, settings, name="series", path=MEMORY)
    return recipe.model_copy(update={"data": settings}), _windows(series, settings)


def _numbers(data: Iterable[Any] | np.ndarray) -> np.ndarray:
    given = data if isinstance(data, np.ndarray) else list(data)
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise SettingsError("The series must be a plain list of finite numbers.")
    return values


def read_windows(settings: SeriesSettings) -> Windows:
    """Read the series, scale it and split its windows."""
    return _windows(read_series(settings), settings)


def _windows(series: series_data.Series, settings: SeriesSettings) -> Windows:
    inputs, expected = series_data.cut_windows(
        series.scaled, window=settings.window, horizon=settings.horizon
    )
    return Windows(series, inputs, expected, *_split(len(inputs), settings))


def read_series(settings: SeriesSettings) -> series_data.Series:
    """Return the CSV column that the settings name, or the built-in series, scaled.

    Where the end of the series is the test, the scale is taken from what lies before it.
    """
    require_files(settings.from_memory, what="numbers")
    if settings.file is None:
        cut = {"window": settings.window, "horizon": settings.horizon, "windows": FEWEST_WINDOWS}
        series_data.require_length(settings.terms, **cut, path=Path(series_data.FIBONACCI))
        return series_data.fibonacci(settings.terms)
    path = Path(settings.file)
    name, values = series_data.read_column(path, settings.column)
    return _prepared(values, settings, name=name, path=path)


def _prepared(
    values: np.ndarray, settings: SeriesSettings, *, name: str, path: Path
) -> series_data.Series:
    cut = {"window": settings.window, "horizon": settings.horizon, "windows": FEWEST_WINDOWS}
    series_data.require_length(len(values), **cut, path=path)
    if settings.split == "shuffled":
        return series_data.scaled_series(values, name=name, path=path)
    windows = len(values) - settings.window - settings.horizon + 1
    seen = settings.window + _training_windows(windows, settings)
    return series_data.scaled_series(values, name=name, path=path, reference=seen)


def _training_windows(windows: int, settings: SeriesSettings) -> int:
    """Return how many windows are not for the test."""
    return min(windows - 1, max(2, round(settings.train_share * windows)))


def _split(windows: int, settings: SeriesSettings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows to train, to choose by and to test on."""
    order = np.arange(windows)
    if settings.split == "shuffled":
        # PCG64's raw stream stays the same in all versions of NumPy.
        order = np.argsort(np.random.PCG64(settings.seed).random_raw(windows), kind="stable")
    seen = _training_windows(windows, settings)
    held = max(1, round(settings.valid_share * seen)) if settings.valid_share else 0
    return order[: seen - held], order[seen - held : seen], order[seen:]


def recipe_for(
    file: Path | None,
    *,
    column: str | None,
    window: int,
    horizon: int,
    attention: str,
    overrides: Sequence[str] = (),
) -> ForecastRecipe:
    """Return the recipe `forecast` for a file or a given series; overrides are applied last."""
    chosen = {
        "data.file": None if file is None else _quoted(str(file)),
        "data.column": None if column is None else _quoted(column),
        "data.window": window,
        "data.horizon": horizon,
        "model.attention": _quoted(attention),
    }
    given = [f"{key}={value}" for key, value in chosen.items() if value is not None]
    return expect(find_recipe("forecast", overrides=[*given, *overrides]), ForecastRecipe)


def _quoted(text: str) -> str:
    """Return a text as TOML writes it, so that no name is taken for a number or a list."""
    return json.dumps(text, ensure_ascii=False)
