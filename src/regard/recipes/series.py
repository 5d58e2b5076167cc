"""The series of a recipe, cut into windows to train, to choose by and to test on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int

from regard.batching.windows import WindowBatch
from regard.corpora.series import (
    FIBONACCI,
    Series,
    cut_windows,
    fibonacci,
    read_column,
    require_length,
    scaled_series,
)
from regard.settings.forecast import SeriesSettings

# Fewer would leave one of the three parts empty.
FEWEST_WINDOWS = 10


@dataclass(frozen=True)
class Windows:
    """All windows of a series, and which of them belong to which part."""

    series: Series
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
        digest = hashlib.blake2b(digest_size=16)
        for part in (self.series.scaled, self.train, self.valid, self.test):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def read_windows(settings: SeriesSettings) -> Windows:
    """Read the series, scale it and split its windows."""
    series = read_series(settings)
    inputs, expected = cut_windows(series.scaled, window=settings.window, horizon=settings.horizon)
    return Windows(series, inputs, expected, *_split(len(inputs), settings))


def read_series(settings: SeriesSettings) -> Series:
    """Return the CSV column that the settings name, or the built-in series, scaled.

    Where the end of the series is the test, the scale is taken from what lies before it.
    """
    cut = {"window": settings.window, "horizon": settings.horizon, "windows": FEWEST_WINDOWS}
    if settings.file is None:
        require_length(settings.terms, **cut, path=Path(FIBONACCI))
        return fibonacci(settings.terms)
    path = Path(settings.file)
    name, values = read_column(path, settings.column)
    require_length(len(values), **cut, path=path)
    if settings.split == "shuffled":
        return scaled_series(values, name=name, path=path)
    windows = len(values) - settings.window - settings.horizon + 1
    seen = settings.window + _training_windows(windows, settings)
    return scaled_series(values, name=name, path=path, reference=seen)


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
