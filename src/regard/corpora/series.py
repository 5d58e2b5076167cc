"""Time series: a column of a CSV file or the Fibonacci numbers, scaled and cut into windows."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy.lib.stride_tricks import sliding_window_view

from regard.base.errors import DataError
from regard.corpora.lines import read_lines

FIBONACCI = "fibonacci"
SEPARATORS = ",;\t"


@dataclass(frozen=True)
class Series:
    """Values in double precision, scaled so that `low` is 0 and `high` is 1."""

    name: str
    scaled: Float[np.ndarray, "time"]
    low: float
    high: float

    def __len__(self) -> int:
        return len(self.scaled)


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
    values: Float[np.ndarray, "time"], *, name: str, path: Path, reference: int | None = None
) -> Series:
    """Return values scaled by the minimum and maximum of the first `reference`, or of all."""
    seen = values[:reference]
    low, high = float(seen.min()), float(seen.max())
    if low == high:
        part = "" if len(seen) == len(values) else f" in the training part (first {len(seen)})"
        raise DataError(
            f"column {name!r} is constant: every value{part} is {low:g}",
            path=path,
            remedy="A constant series cannot be forecast; choose another column.",
        )
    return Series(name, (values - low) / (high - low), low, high)


def cut_windows(
    series: Float[np.ndarray, "time"], *, window: int, horizon: int
) -> tuple[Float[np.ndarray, "windows window"], Float[np.ndarray, "windows horizon"]]:
    """Return every window of the series with the values that follow it."""
    both = sliding_window_view(series, window + horizon)
    return both[:, :window], both[:, window:]


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


def read_column(path: Path, column: str | None = None) -> tuple[str, Float[np.ndarray, "time"]]:
    """Return the name and the numbers of a CSV column, separated by comma, semicolon or tab.

    Without a header line the columns are named 1, 2, 3 and so on.
    """
    lines = read_lines(path, expected="a header line and one row of numbers per line")
    reader = csv.reader(lines, delimiter=_separator(lines[0]))
    rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    if not rows:
        raise DataError(
            "the file holds only empty lines", path=path, remedy="It should hold rows of numbers."
        )
    first = [cell.strip() for cell in rows[0][1]]
    headed = any(_number(cell) is None for cell in first)
    names = first if headed else [str(place + 1) for place in range(len(first))]
    body = rows[1:] if headed else rows
    place = _place(names, column, path)
    if not body:
        raise DataError(
            "there is a header line but no row of numbers",
            path=path,
            remedy="Give one row of numbers per line.",
        )
    numbers = [_cell(row, place, names[place], path=path, line=line) for line, row in body]
    return names[place], np.array(numbers)


def _separator(header: str) -> str:
    """Return the most frequent separator of the header, by default a comma."""
    return max(SEPARATORS, key=header.count)


def _place(names: Sequence[str], column: str | None, path: Path) -> int:
    """Return the index of a column."""
    listed = ", ".join(names)
    if column is None:
        if len(names) == 1:
            return 0
        raise DataError(
            f"there are {len(names)} columns: {listed}",
            path=path,
            remedy="Name the one to forecast with --column.",
        )
    if column not in names:
        raise DataError(
            f"there is no column {column!r}",
            path=path,
            remedy=f"The columns are: {listed}.",
        )
    return names.index(column)


def _cell(row: Sequence[str], place: int, name: str, *, path: Path, line: int) -> float:
    """Return the number in one cell."""
    if place >= len(row):
        raise DataError(
            f"the row has {len(row)} cells, so none in column {name!r}",
            path=path,
            line=line,
            remedy="Complete the row or remove it.",
        )
    number = _number(row[place])
    if number is None or not math.isfinite(number):
        raise DataError(
            f"column {name!r} holds {row[place]!r}, which is not a number",
            path=path,
            line=line,
            remedy="Put a number there (with a point for decimals) or remove the row.",
        )
    return number


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
