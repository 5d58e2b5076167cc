"""Time series, scaled and cut into windows; the Fibonacci numbers; seasons and future dates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view

from regard.base.errors import DataError

FIBONACCI = "fibonacci"
# A repetition counts as a season from this autocorrelation of the changes on.
SEASONAL = 0.3
MOST_COMPARED = 200_000  # values that a season is looked for in
# Squares of errors beyond this, in units of the training part's range, would be inexact.
WIDEST = 1e15


@dataclass(frozen=True)
class InputColumn:
    """A further column that the model reads, scaled as the series is."""

    name: str
    scaled: Float[np.ndarray, "time"]
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """Values in double precision, scaled so that `low` is 0 and `high` is 1."""

    name: str
    scaled: Float[np.ndarray, "time"]
    low: float
    high: float
    inputs: tuple[InputColumn, ...] = ()
    times: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.scaled)

    @property
    def read(self) -> Float[np.ndarray, "time *columns"]:
        """What a model reads: the series, with its further inputs."""
        if not self.inputs:
            return self.scaled
        return np.stack([self.scaled, *(column.scaled for column in self.inputs)], axis=1)

    def in_units(self, scaled: np.ndarray) -> np.ndarray:
        """Return scaled values in the units of the series."""
        return self.low + (self.high - self.low) * scaled


def fibonacci(terms: int) -> Series:
    """Return 1, 2, 3, 5, 8, ... scaled to [0, 1].

    The numbers are exact integers until the final division: of 1,200 terms the second is 2.27e-251,
    which a subtraction in floating point would lose.
    """
    numbers = [1, 2]
    while len(numbers) < terms:
        numbers.append(numbers[-1] + numbers[-2])
    low, high = numbers[0], numbers[-1]
    scaled = np.array([(number - low) / (high - low) for number in numbers])
    return Series(FIBONACCI, scaled, float(low), float(high))


def scaled_series(
    values: Float[np.ndarray, "time"],
    *,
    name: str,
    path: Path,
    reference: int | None = None,
    inputs: Sequence[tuple[str, np.ndarray]] = (),
    times: np.ndarray | None = None,
) -> Series:
    """Return values scaled by the minimum and maximum of the first `reference`, or of all."""
    low, high = _bounds(values, name=name, path=path, reference=reference)
    columns = []
    for other, numbers in inputs:
        least, most = _bounds(numbers, name=other, path=path, reference=reference)
        columns.append(InputColumn(other, (numbers - least) / (most - least), least, most))
    return Series(name, (values - low) / (high - low), low, high, tuple(columns), times)


def _bounds(
    values: Float[np.ndarray, "time"], *, name: str, path: Path, reference: int | None
) -> tuple[float, float]:
    """Return the least and the largest of the first values, which must differ."""
    seen = values[:reference]
    low, high = float(seen.min()), float(seen.max())
    if low == high:
        part = "" if len(seen) == len(values) else f" in the training part (first {len(seen)})"
        raise DataError(
            f"column {name!r} is constant: every value{part} is {low:g}",
            path=path,
            remedy="A constant series cannot be forecast; choose another column.",
        )
    largest = float(np.abs(values / 2 - low / 2).max() / (high / 2 - low / 2))
    if not largest < WIDEST or not math.isfinite(high - low):
        raise DataError(
            f"column {name!r} goes from {values.min():g} to {values.max():g}, too wide a range for "
            "a forecast",
            path=path,
            remedy="Take logarithms, or remove the values that are out of all proportion.",
        )
    return low, high


def cut_windows(
    series: Float[np.ndarray, "time *columns"], *, window: int, horizon: int
) -> tuple[Float[np.ndarray, "windows window *columns"], Float[np.ndarray, "windows horizon"]]:
    """Return every window of the series with the values that follow it in its first column."""
    both = sliding_window_view(series, window + horizon, axis=0)  # [windows, *columns, time]
    if series.ndim == 1:
        return both[:, :window], both[:, window:]
    return both[:, :, :window].transpose(0, 2, 1), both[:, 0, window:]


def require_length(values: int, *, window: int, horizon: int, windows: int, path: Path) -> None:
    """Refuse a series that is too short for this number of windows."""
    needed = window + horizon + windows - 1
    if values < needed:
        raise DataError(
            f"the series has {values} values, but a window of {window} and a horizon of {horizon} "
            f"need at least {needed}",
            path=path,
            remedy="Give a longer series, or a smaller window or horizon.",
        )


def find_season(values: Float[np.ndarray, "time"]) -> int | None:
    """Return after how many steps a series repeats itself most clearly; None if it does not.

    The changes from step to step are compared, so that a trend is not taken for a season. Of a long
    series the end is.
    """
    values = values[-MOST_COMPARED:]
    changes = np.diff(values)
    longest = len(values) // 3
    power = float(np.sum((changes - changes.mean()) ** 2)) if len(changes) else 0.0
    if longest < 2 or power == 0:
        return None
    centred = changes - changes.mean()
    size = 2 ** int(np.ceil(np.log2(2 * len(centred))))
    spectrum = np.fft.rfft(centred, size)
    similar = np.fft.irfft(spectrum * spectrum.conj(), size)[: 2 * longest] / power
    # Fewer terms are summed at longer lags, by which a later repetition would look weaker.
    similar *= len(centred) / (len(centred) - np.arange(len(similar)))
    enough = max(SEASONAL, 3 / np.sqrt(len(values)))

    def stands_out(lag: int) -> bool:
        """Return whether the series is like itself at this lag, and unlike before and after."""
        peak = similar[lag] >= similar[lag - 1] and similar[lag] > similar[lag + 1]
        if not (peak and similar[lag] > enough):
            return False
        before, after = similar[min(2, lag - 1) : lag], similar[lag + 1 : 2 * lag]
        return bool(similar[lag] - max(before.min(), after.min()) > SEASONAL)

    clear = [lag for lag in range(2, longest) if stands_out(lag)]
    if not clear:
        return None
    best = max(similar[lag] for lag in clear)
    return next(lag for lag in clear if similar[lag] >= 0.9 * best)


def seasonal_forecast(
    values: Float[np.ndarray, "time"],
    places: Int[np.ndarray, "places"],
    *,
    season: int,
    horizon: int,
) -> Float[np.ndarray, "places horizon"]:
    """Return for each place the values one season earlier, or the last one where none is known."""
    ahead = np.arange(horizon)
    back = places[:, None] + ahead - season * (ahead // season + 1)
    return np.asarray(values[np.where(back >= 0, back, places[:, None] - 1)])


def future_times(times: np.ndarray, count: int) -> np.ndarray:
    """Return the times that follow: months later, weekdays alone, or at the usual distance."""
    days, months = times.astype("datetime64[D]"), times.astype("datetime64[M]")
    steps = np.diff(months).astype(int)
    ahead = np.arange(1, count + 1)
    distance = np.median(np.diff(times)) if len(times) > 1 else np.timedelta64(1, "D")
    following: np.ndarray = times[-1] + ahead * distance
    if len(steps) and steps[0] >= 1 and (steps == steps[0]).all():
        within = times - months.astype(times.dtype)
        if len({*within.tolist()}) == 1:
            following = (months[-1] + ahead * steps[0]).astype(times.dtype) + within[-1]
        else:  # the last day of a month, be it the 28th or the 31st
            first_days = (months[-1] + ahead * steps[0] + 1).astype("datetime64[D]")
            following = (first_days - np.timedelta64(1, "D")).astype(times.dtype)
    elif distance == np.timedelta64(1, "D") and len(days) > 7 and np.is_busday(days).all():
        clock = times[-1] - days[-1].astype(times.dtype)
        following = np.busday_offset(days[-1], ahead, roll="forward").astype(times.dtype) + clock
    return following
