"""CSV files with series as programs write them: decimal commas, thousands marks, dates, gaps."""

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float

from regard.base.errors import DataError
from regard.corpora.lines import csv_rows, read_lines

Decimal = Literal["auto", "point", "comma"]
Gaps = Literal["refuse", "interpolate", "drop"]

SEPARATORS = "\t;,"
LINES_COMPARED = 20
GAP_MARKS = frozenset(["", "-", "--", ".", "?", "na", "n/a", "#n/a", "nan", "null", "none"])
# Thousands marks of any country besides the point and the comma, between digits.
SPACED = re.compile(r"(?<=\d)[\s'\u2019](?=\d{3}(?!\d))")
MARKS: tuple[Literal["comma", "point"], ...] = ("comma", "point")
# Numbers that leave no doubt, and one that may be a thousand or a fraction.
SHOWS = {
    "comma": re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+,\d+|\d*,(?!\d{3}$)\d+|0+,\d+)"),
    "point": re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+\.\d+|\d*\.(?!\d{3}$)\d+|0+\.\d+)"),
}
EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
GROUPED = {
    "point": re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?"),
    "comma": re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+(?:,\d*)?"),
}
DATES = ("%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%Y-%m", "%Y/%m", "%m/%Y",
         "%b %Y", "%B %Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y %H:%M",
         "%d/%m/%Y %H:%M")  # fmt: skip
# These look like numbers, so they count as dates only in a column that is said to hold dates.
BARE_DATES = ("%Y%m%d", "%Y")


@dataclass(frozen=True, kw_only=True)
class SeriesReading:
    """Which columns are read from a file and how; `inputs` are read in addition."""

    column: str | None = None
    inputs: tuple[str, ...] = ()
    dates: str | None = None
    decimal: Decimal = "auto"
    gaps: Gaps = "refuse"


@dataclass(frozen=True)
class SeriesTable:
    """The column to forecast, then the inputs, in order of time; notes say what was changed."""

    names: tuple[str, ...]
    values: Float[np.ndarray, "time columns"]
    times: np.ndarray | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Cells:
    """The cells of a file below its header, with the line of each row."""

    path: Path
    names: list[str]
    lines: Sequence[int]
    rows: list[list[str]]

    def column(self, place: int) -> list[str]:
        """Return the cells of a column; every row must have one."""
        for line, row in zip(self.lines, self.rows, strict=True):
            if place >= len(row):
                raise DataError(
                    f"the row has {len(row)} cells, so none in column {self.names[place]!r}",
                    path=self.path,
                    line=line,
                    remedy="Complete the row or remove it.",
                )
        return [row[place].strip() for row in self.rows]

    def place(self, name: str) -> int:
        """Return the index of a column."""
        if name not in self.names:
            raise DataError(
                f"there is no column {name!r}",
                path=self.path,
                remedy=f"The columns are: {', '.join(self.names)}.",
            )
        return self.names.index(name)


def read_series_file(path: Path, reading: SeriesReading) -> SeriesTable:
    """Return the columns of a CSV file, separated by comma, semicolon or tab.

    Without a header line the columns are named 1, 2, 3 and so on. A column of dates orders the
    rows; newest first is common, and is turned round.
    """
    cells = _read_cells(path, reading.decimal)
    times, dates = _times(cells, reading)
    target = _target(cells, reading.column, dates)
    places = [target, *(cells.place(name) for name in reading.inputs)]
    if len({*places}) != len(places):
        raise DataError(
            f"a column is named twice: {', '.join(cells.names[place] for place in places)}",
            path=path,
            remedy="The column to forecast is an input anyway; name each other input once.",
        )
    decimal = _decimal(cells, places, reading.decimal)
    columns = [_numbers(cells, place, decimal, refuse=reading.gaps == "refuse") for place in places]
    values = np.stack(columns, axis=1)
    notes = []
    if times is not None and (np.diff(times) < np.timedelta64(0, "us")).any():
        order = np.argsort(times, kind="stable")
        backwards = bool((np.diff(times) <= np.timedelta64(0, "us")).all())
        notes.append(
            "The dates run backwards: the series was turned round."
            if backwards
            else "The dates are not in order: the rows were sorted by them."
        )
        values, times = values[order], times[order]
    values, times, said = fill_gaps(values, times, gaps=reading.gaps, path=path)
    names = tuple(cells.names[place] for place in places)
    return SeriesTable(names, values, times, (*notes, *said))


def fill_gaps(
    values: Float[np.ndarray, "time columns"],
    times: np.ndarray | None,
    *,
    gaps: Gaps,
    path: Path,
) -> tuple[Float[np.ndarray, "kept columns"], np.ndarray | None, list[str]]:
    """Return values without gaps (NaN), and a sentence on how many there were.

    Between two values a gap is filled in proportion to the time between them; before the first and
    after the last value there is nothing to go by, and those rows are dropped.
    """
    missing = np.isnan(values)
    if not missing.any():
        return values, times, []
    if missing.all(axis=0).any():
        raise DataError("a column holds no number", path=path, remedy="Choose another column.")
    if gaps == "drop":
        kept = ~missing.any(axis=1)
        count = int((~kept).sum())
        said = [f"{count} row{'s' * (count != 1)} with gaps left out."]
        return values[kept], None if times is None else times[kept], said
    known = [np.flatnonzero(~column) for column in missing.T]
    first, last = int(max(rows[0] for rows in known)), int(min(rows[-1] for rows in known))
    if times is None:
        clock = np.arange(len(values), dtype=np.float64)
    else:
        clock = (times - times[0]) / np.timedelta64(1, "s")
    filled = np.stack(
        [np.interp(clock, clock[rows], values[rows, i]) for i, rows in enumerate(known)], axis=1
    )
    inside = int(missing[first : last + 1].sum())
    said = [f"{inside} gap{'s' * (inside != 1)} interpolated."] if inside else []
    cut = len(values) - (last + 1 - first)
    if cut:
        said.append(f"{cut} row{'s' * (cut != 1)} with gaps at the ends left out.")
    part = slice(first, last + 1)
    return filled[part], None if times is None else times[part], said


def _read_cells(path: Path, decimal: Decimal) -> _Cells:
    lines = read_lines(path, expected="a header line and one row of numbers per line")
    separator = _separator(lines, decimal, path)
    numbers, rows = array("q"), []
    for line, row in csv_rows(_consumed(lines), separator=separator, path=path):
        if any(cell.strip() for cell in row):
            numbers.append(line)
            rows.append(row)
    if not rows:
        raise DataError(
            "the file holds only empty lines", path=path, remedy="It should hold rows of numbers."
        )
    first = [cell.strip() for cell in rows[0]]
    headed = _is_header(first, rows[1:2])
    names = first if headed else [str(place + 1) for place in range(len(first))]
    if headed:
        del rows[0], numbers[0]
    if not rows:
        raise DataError(
            "there is a header line but no row of numbers",
            path=path,
            remedy="Give one row of numbers per line.",
        )
    return _Cells(path, names, numbers, rows)


def _consumed(lines: list[str]) -> Iterator[str]:
    """Yield the lines and forget them: a long series is in memory once, not twice."""
    lines.reverse()
    while lines:
        yield lines.pop()


def _is_header(first: Sequence[str], following: Sequence[Sequence[str]]) -> bool:
    """Return whether a row holds names: no values, or none where the next row has one."""
    values = [_is_value(cell) for cell in first]
    below = [_is_value(cell.strip()) for row in following for cell in row]
    return not any(values) or any(b and not a for a, b in zip(values, below, strict=False))


def _is_value(cell: str) -> bool:
    """Return whether a cell holds a number or a date, as headers do not."""
    return _plain_number(cell.replace(",", ".")) is not None or _date_format([cell]) is not None


def _separator(lines: Sequence[str], decimal: Decimal, path: Path) -> str:
    """Return what splits the first lines into equally many cells, else the header's most frequent.

    Lines of single numbers with a decimal comma have no separator; a tab then stands for none.
    """
    sample = [line for line in lines[: LINES_COMPARED * 2] if line.strip()][:LINES_COMPARED]
    allowed = [mark for mark in SEPARATORS if not (decimal == "comma" and mark == ",")]
    for mark in allowed:
        widths = {len(row) for _, row in csv_rows(sample, separator=mark, path=path)}
        if len(widths) == 1 and widths != {1}:
            return mark
    most = max(allowed, key=lambda mark: sample[0].count(mark) if sample else 0)
    return most if sample and most in sample[0] else "\t"


def _target(cells: _Cells, column: str | None, dates: int | None) -> int:
    """Return the column to forecast: the one that is named, or the only one besides the dates."""
    if column is not None:
        return cells.place(column)
    others = [place for place in range(len(cells.names)) if place != dates]
    if len(others) != 1:
        raise DataError(
            f"there are {len(cells.names)} columns: {', '.join(cells.names)}",
            path=cells.path,
            remedy="Name the one to forecast with --column.",
        )
    return others[0]


def _times(cells: _Cells, reading: SeriesReading) -> tuple[np.ndarray | None, int | None]:
    """Return the times of the rows, and the column that they are in; None where there is none."""
    if reading.dates is not None:
        place = cells.place(reading.dates)
        column = cells.column(place)
        found = _date_format(column, (*DATES, *BARE_DATES))
        if found is None:
            forms = (*DATES, *BARE_DATES)
            wrong = next(i for i, cell in enumerate(column) if _date_format([cell], forms) is None)
            raise DataError(
                f"column {reading.dates!r} holds {column[wrong]!r}, which is not a date",
                path=cells.path,
                line=cells.lines[wrong],
                remedy="Dates look like 2024-01-31, 31.01.2024, 01/31/2024 or 2024-01.",
            )
        return _parsed(column, found), place
    width = min(len(row) for row in cells.rows)
    for place in range(min(width, len(cells.names))):
        column = [row[place].strip() for row in cells.rows]
        if cells.names[place] != reading.column and (found := _date_format(column)) is not None:
            return _parsed(column, found), place
    return None, None


def _date_format(cells: Sequence[str], forms: Sequence[str] = DATES) -> str | None:
    """Return the format that all cells have; "iso" for ISO 8601, None if they are no dates.

    Where days and months could be either, the one in which the dates are in order is meant.
    """
    fitting = [form for form in ("iso", *forms) if _fits(cells, form)]
    for form in fitting:
        steps = np.diff(_parsed(cells, form)) / np.timedelta64(1, "s")
        if (steps >= 0).all() or (steps <= 0).all():
            return form
    return fitting[0] if fitting else None


def _fits(cells: Sequence[str], form: str) -> bool:
    try:
        for cell in cells:
            _date(cell, form)
    except ValueError:
        return False
    return True


def _date(cell: str, form: str) -> datetime:
    if form != "iso":
        return datetime.strptime(cell, form)
    if cell.isdigit():  # fromisoformat reads 20240131, which may as well be a number
        raise ValueError(cell)
    return datetime.fromisoformat(cell).replace(tzinfo=None)


def _parsed(cells: Sequence[str], form: str) -> np.ndarray:
    return np.array([_date(cell, form) for cell in cells], dtype="datetime64[us]")


def _decimal(cells: _Cells, places: Iterable[int], asked: Decimal) -> Literal["point", "comma"]:
    """Return the decimal mark: the one asked for, or the one that the numbers show."""
    if asked != "auto":
        return asked
    columns = [cells.column(place) for place in places]
    for part in (columns, cells.rows):
        comma, point = (
            any(_shows(SPACED.sub("", cell.strip()), mark) for row in part for cell in row)
            for mark in MARKS
        )
        if comma != point:
            return "comma" if comma else "point"
        if comma and point:
            raise DataError(
                "some numbers have a decimal comma and some a decimal point",
                path=cells.path,
                remedy="Say which one is meant: --decimal comma or --decimal point.",
            )
    for line, row in zip(cells.lines, cells.rows, strict=True):
        for place in places:
            if EITHER.fullmatch(row[place].strip()):
                raise DataError(
                    f"{row[place].strip()!r} may be {row[place].strip().replace(',', '')} or "
                    f"{row[place].strip().replace(',', '.')}",
                    path=cells.path,
                    line=line,
                    remedy="Say which one is meant: --decimal comma or --decimal point.",
                )
    return "point"


def _shows(text: str, mark: Literal["point", "comma"]) -> bool:
    """Return whether a number leaves no doubt about its decimal mark."""
    many = text.count("," if mark == "point" else ".") > 1
    return SHOWS[mark].fullmatch(text) is not None or (many and _is_grouped(text, mark))


def _is_grouped(text: str, decimal: Literal["point", "comma"]) -> bool:
    return GROUPED[decimal].fullmatch(text) is not None


def _numbers(
    cells: _Cells, place: int, decimal: Literal["point", "comma"], *, refuse: bool
) -> Float[np.ndarray, "time"]:
    """Return the numbers of a column; gaps are NaN unless they are refused."""
    found = []
    for line, cell in zip(cells.lines, cells.column(place), strict=True):
        gap = cell.lower() in GAP_MARKS
        number = math.nan if gap else _number(cell, decimal)
        if (gap and refuse) or number is None:
            raise DataError(
                f"column {cells.names[place]!r} holds {cell!r}, which is not a number",
                path=cells.path,
                line=line,
                remedy="Fill gaps with --gaps interpolate, or leave such rows out with --gaps drop "
                "(regard train: --set data.gaps=interpolate)."
                if gap
                else "Put a number there or remove the row; --decimal comma reads 51,29.",
            )
        found.append(number)
    return np.array(found, dtype=np.float64)


def _number(cell: str, decimal: Literal["point", "comma"]) -> float | None:
    """Return the number in a cell without its thousands marks, or None."""
    text = SPACED.sub("", cell)
    mark, other = (".", ",") if decimal == "point" else (",", ".")
    if other in text and not _is_grouped(text, decimal):
        return None
    return _plain_number(text.replace(other, "").replace(mark, "."))


def _plain_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None
