"""The series of a recipe, cut into windows to train, to choose by and to test on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from regard.base.errors import SettingsError
from regard.base.files import fingerprint
from regard.base.shapes import Float, Tensor
from regard.batching.order import BatchOrder, BatchPosition, iterate_rows
from regard.corpora import series as series_data
from regard.corpora import series_files, sources
from regard.corpora.tables import RECORDS, Columns, read_rows
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.forecasting.settings import ForecastRecipe, SeriesSettings
from regard.training.progress import DataFacts, Fact

# Fewer would leave one of the three parts empty.
FEWEST_WINDOWS = 10
MEMORY = Path("data")
PART = 4_096  # windows that are forecast at once


@dataclass(frozen=True)
class WindowBatch:
    """Windows of one length with the values that follow them."""

    inputs: Float[Tensor, "batch time *columns"]
    expected: Float[Tensor, "batch horizon"]

    @property
    def target_tokens(self) -> int:
        """How many values are to be forecast."""
        return self.expected.numel()

    def rows(self, chosen: Int[Tensor, "rows"]) -> WindowBatch:
        """Return these windows."""
        return WindowBatch(self.inputs[chosen], self.expected[chosen])

    def parts(self, chosen: Int[Tensor, "rows"], *, size: int = PART) -> Iterator[WindowBatch]:
        """Yield these windows, some at a time: a series may have millions."""
        for first in range(0, len(chosen), size):
            yield self.rows(chosen[first : first + size])

    @property
    def padding_share(self) -> float:
        """Windows are of one length: nothing is padded."""
        return 0.0


@dataclass(frozen=True)
class Windows:
    """All windows of a series, and which of them belong to which part."""

    series: series_data.Series
    inputs: Float[np.ndarray, "windows window *columns"]
    expected: Float[np.ndarray, "windows horizon"]
    train: Int[np.ndarray, "train"]
    valid: Int[np.ndarray, "valid"]
    test: Int[np.ndarray, "test"]
    season: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def window(self) -> int:
        """The number of steps that a model reads."""
        return int(self.inputs.shape[1])

    def batch(self, rows: Int[np.ndarray, "rows"]) -> WindowBatch:
        """Return these windows as tensors."""
        return WindowBatch(torch.tensor(self.inputs[rows]), torch.tensor(self.expected[rows]))

    @cached_property
    def all(self) -> WindowBatch:
        """All windows: places in the series, of which nothing is copied."""
        window, values = self.window, torch.from_numpy(np.array(self.series.read))
        both = values.unfold(0, window + self.expected.shape[1], 1)  # [windows, *columns, time]
        if both.dim() == 2:
            return WindowBatch(both[:, :window], both[:, window:])
        return WindowBatch(both[:, :, :window].transpose(1, 2), both[:, 0, window:])

    def facts(self, *, batch_size: int) -> DataFacts:
        """Return what a plan says of the series and its windows."""
        sizes = {part: len(getattr(self, part)) for part in ("train", "valid", "test")}
        shown = ", ".join(f"{count:,} {part}" for part, count in sizes.items())
        window, horizon = self.inputs.shape[1], self.expected.shape[1]
        after = f"{horizon} values that follow" if horizon > 1 else "the value that follows"
        return DataFacts(
            facts=(Fact("windows", sizes, f"{shown}; {window} values each, and {after}"),),
            batches=-(-len(self.train) // batch_size),
            unit="values",
        )

    def fingerprint(self) -> str:
        """Return a short digest of series and split, which tells one from another."""
        return fingerprint([self.series.read, self.train, self.valid, self.test])


# Numbers in their order, or the name of a table.
GivenSeries = Iterable[Any] | Mapping[str, Any] | np.ndarray | str | Path
BUILT_IN = "the Fibonacci numbers"
VALUE = Columns("number", (("value", "y"),))


def given_windows(
    recipe: ForecastRecipe, data: GivenSeries | None
) -> tuple[ForecastRecipe, Windows]:
    """Return the windows of a series that is given in Python, or else of the recipe's."""
    if data is None:
        settings = located(recipe.data)
        return recipe.model_copy(update={"data": settings}), read_windows(settings)
    given = _whole(data)
    if isinstance(given, str):
        update = {"file": given, "from_memory": False, "built_in": False}
        named = located(recipe.data.model_copy(update=update))
        return recipe.model_copy(update={"data": named}), read_windows(named)
    if recipe.data.inputs:
        raise SettingsError("data.inputs names columns of a file; a plain series has none.")
    settings = recipe.data.model_copy(
        update={"from_memory": True, "built_in": False, "file": None, "column": None}
    )
    table = _plain_table(given, "series", settings, path=MEMORY)
    found = _windows(_prepared(table, settings, path=MEMORY), settings, table.notes)
    return recipe.model_copy(update={"data": settings}), found


def _plain_table(
    values: Iterable[Any] | np.ndarray, name: str, settings: SeriesSettings, *, path: Path
) -> series_files.SeriesTable:
    """Return numbers in their order as a table of one column."""
    numbers = _numbers(values, gaps=settings.gaps != "refuse")
    filled, _, notes = series_files.fill_gaps(numbers[:, None], None, gaps=settings.gaps, path=path)
    return series_files.SeriesTable((name,), filled, None, tuple(notes))


def _whole(data: GivenSeries) -> Any:
    """Return a series that is given in Python, or the name of its file; it has no parts."""
    if isinstance(data, Mapping):
        if [*data] != ["train"]:
            raise SettingsError(
                "A series is one file or list of numbers: its end is the test "
                "(data.train_share says where that begins), and it takes no --valid or --test."
            )
        data = data["train"]
    if isinstance(data, str | Path):
        return str(data)
    if isinstance(data, Sequence) and data and isinstance(data[0], Path):
        if len(data) > 1:
            raise SettingsError(f"A series lies in one file; {len(data)} were named.")
        return str(data[0])
    return data


def located(settings: SeriesSettings) -> SeriesSettings:
    """Return the settings with the file of a folder in its place; refuse settings without data."""
    if settings.built_in or settings.from_memory:
        return settings
    if settings.file is None:
        raise sources.no_data("a series", built_in=BUILT_IN)
    found = sources.locate({"train": (settings.file,)}, records="a series")["train"]
    return settings.model_copy(update={"file": found[0]})


def _numbers(data: Iterable[Any] | np.ndarray, *, gaps: bool) -> np.ndarray:
    given = data if isinstance(data, np.ndarray) else list(data)
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.ndim != 1 or not (np.isfinite(values) | (np.isnan(values) if gaps else False)).all():
        raise SettingsError(
            "The series must be a plain list of finite numbers; gaps (None or NaN) need "
            'data.gaps = "interpolate" or "drop".'
        )
    return values


def read_windows(settings: SeriesSettings) -> Windows:
    """Read the series, scale it and split its windows."""
    series, notes = read_series(settings)
    return _windows(series, settings, notes)


def _windows(
    series: series_data.Series, settings: SeriesSettings, notes: Sequence[str] = ()
) -> Windows:
    inputs, expected = series_data.cut_windows(
        series.read, window=settings.window, horizon=settings.horizon
    )
    parts = _split(len(inputs), settings)
    season = settings.season
    if season is None and settings.split == "time":  # found where the test part is not seen
        season = series_data.find_season(series.scaled[: settings.window + parts[2][0]])
    return Windows(series, inputs, expected, *parts, season or None, tuple(notes))


def read_series(settings: SeriesSettings) -> tuple[series_data.Series, tuple[str, ...]]:
    """Return the columns that the settings name, or the built-in series, scaled, and notes.

    Where the end of the series is the test, the scale is taken from what lies before it.
    """
    sources.require_files(settings.from_memory, what="numbers")
    settings = located(settings)
    if settings.file is None:
        cut = {"window": settings.window, "horizon": settings.horizon, "windows": FEWEST_WINDOWS}
        series_data.require_length(settings.terms, **cut, path=Path(series_data.FIBONACCI))
        return series_data.fibonacci(settings.terms), ()
    path = Path(settings.file)
    table = read_table(path, settings)
    return _prepared(table, settings, path=path), table.notes


def read_table(path: Path, settings: SeriesSettings) -> series_files.SeriesTable:
    """Return the columns of a file that the settings name, as they are."""
    if sources.kind_of(path) in RECORDS:
        chosen = VALUE.named(columns=[settings.column] if settings.column else [], path=path)
        cells = [row.cells[0] for row in read_rows(path, chosen)]
        return _plain_table(cells, settings.column or "value", settings, path=path)
    reading = series_files.SeriesReading(
        column=settings.column,
        inputs=settings.inputs,
        dates=settings.dates,
        decimal=settings.decimal,
        gaps=settings.gaps,
    )
    return series_files.read_series_file(path, reading)


def _prepared(
    table: series_files.SeriesTable, settings: SeriesSettings, *, path: Path
) -> series_data.Series:
    values, others = table.values[:, 0], table.values[:, 1:].T
    cut = {"window": settings.window, "horizon": settings.horizon, "windows": FEWEST_WINDOWS}
    series_data.require_length(len(values), **cut, path=path)
    seen = None
    if settings.split == "time":
        windows = len(values) - settings.window - settings.horizon + 1
        seen = settings.window + _training_windows(windows, settings)
    return series_data.scaled_series(
        values,
        name=table.names[0],
        path=path,
        reference=seen,
        inputs=list(zip(table.names[1:], others, strict=True)),
        times=table.times,
    )


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
    **reading: Any,
) -> ForecastRecipe:
    """Return the recipe `forecast` for a file or a given series; overrides are applied last.

    `reading` are further settings of the data, as `gaps="drop"`; None leaves one as it is.
    """
    data = {"column": column, "window": window, "horizon": horizon, **reading}
    chosen = {
        "data.file": None if file is None else str(file),
        **{f"data.{name}": value for name, value in data.items()},
        "model.attention": attention,
    }
    given = [f"{key}={_toml(value)}" for key, value in chosen.items() if value is not None]
    return expect(find_recipe("forecast", overrides=[*given, *overrides]), ForecastRecipe)


def _toml(value: Any) -> str:
    """Return a value as TOML writes it, so that no name is taken for a number or a list."""
    return json.dumps(value, ensure_ascii=False)


def iterate_windows(
    windows: WindowBatch,
    *,
    batch_size: int,
    seed: int,
    start: BatchPosition,
    rows: Int[Tensor, "rows"] | None = None,
) -> Iterator[tuple[BatchPosition, WindowBatch]]:
    """Yield batches of windows, or of these rows of them, without end, in an order by the seed."""
    time, horizon = windows.inputs.shape[1], windows.expected.shape[1]
    count = len(windows.inputs) if rows is None else len(rows)
    order = BatchOrder(
        np.full((count, 2), (time, horizon)),
        token_budget=batch_size * (time + horizon),
        seed=seed,
    )

    def collate(chosen: Sequence[int]) -> WindowBatch:
        places = torch.tensor(chosen)
        return windows.rows(places if rows is None else rows[places])

    return iterate_rows(order, collate, start=start)
