from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import DataError
from regard.corpora.series import (
    cut_windows,
    fibonacci,
    find_season,
    future_times,
    require_length,
    scaled_series,
    seasonal_forecast,
)
from regard.corpora.series_files import SeriesReading, read_series_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "series.csv"


def test_fibonacci_is_exact_down_to_its_second_term() -> None:
    series = fibonacci(1_200)
    assert len(series) == 1_200
    assert series.scaled[0] == 0.0
    assert f"{series.scaled[1]:.4e}" == "2.2664e-251"
    assert series.scaled[2] == 2 * series.scaled[1]
    assert series.scaled[-1] == 1.0
    assert int((series.scaled > 1e-3).sum()) == 15


@pytest.mark.parametrize(
    ("text", "column", "name", "values"),
    [
        ("a,b\n1,2\n3,4\n", "b", "b", [2, 4]),
        ("a;b\n1;2\n3;4\n", "a", "a", [1, 3]),
        ("a\tb\n1\t2\n", "b", "b", [2]),
        ("1,2\n3,4\n", "2", "2", [2, 4]),
        ("only\n1.5\n-2e3\n\n", None, "only", [1.5, -2000]),
        ('"a, b", c\n 1 ,2\n', "a, b", "a, b", [1]),
        ("\ufeffa\r\n1\r\n2\r\n", "a", "a", [1, 2]),
    ],
    ids=["comma", "semicolon", "tab", "no header", "one column", "quoted", "windows"],
)
def test_a_column_is_read(
    file: Path, text: str, column: str | None, name: str, values: list[float]
) -> None:
    file.write_bytes(text.encode())
    found = read_series_file(file, SeriesReading(column=column))
    assert found.names == (name,)
    assert found.values[:, 0].tolist() == values
    assert found.values.dtype == np.float64
    assert found.times is None and found.notes == ()


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a,b\n1,2\n3,n/a\n", "b", "line 3: column 'b' holds 'n/a', which is not a number"),
        ("a,b\n1,\n", "b", "line 2: column 'b' holds '', which is not a number"),
        ("a\nnan\n", "a", "line 2: column 'a' holds 'nan', which is not a number"),
        ("a,b\n1,2\n3\n", "b", "line 3: the row has 1 cells, so none in column 'b'"),
        ("a,b\n1,2\n", "c", "there is no column 'c'. The columns are: a, b."),
        ("a,b\n1,2\n", None, "there are 2 columns: a, b. Name the one to forecast with --column"),
        ("a,b\n", "a", "there is a header line but no row of numbers"),
        ("\n\n", "a", "the file holds only empty lines"),
        (
            "",
            "a",
            "the file is empty. It should hold a header line and one row of numbers per line",
        ),
    ],
)
def test_what_is_wrong_is_said(file: Path, text: str, column: str | None, message: str) -> None:
    file.write_text(text)
    with pytest.raises(DataError) as error:
        read_series_file(file, SeriesReading(column=column))
    assert message in str(error.value)
    assert str(file) in str(error.value)


def test_scale_by_all_or_by_the_beginning(file: Path) -> None:
    values = np.array([2.0, 4.0, 6.0, 10.0])
    assert scaled_series(values, name="x", path=file).scaled.tolist() == [0, 0.25, 0.5, 1]
    begun = scaled_series(values, name="x", path=file, reference=3)
    assert begun.scaled.tolist() == [0, 0.5, 1, 2]
    assert (begun.low, begun.high) == (2.0, 6.0)


def test_constant_series_are_refused(file: Path) -> None:
    with pytest.raises(DataError, match="column 'x' is constant: every value is 3"):
        scaled_series(np.full(9, 3.0), name="x", path=file)
    values = np.array([3.0] * 8 + [4.0])
    with pytest.raises(DataError, match=r"every value in the training part \(first 8\) is 3"):
        scaled_series(values, name="x", path=file, reference=8)


def test_series_shorter_than_the_window_are_refused(file: Path) -> None:
    message = "the series has 15 values, but a window of 20 and a horizon of 1 need at least 30"
    with pytest.raises(DataError, match=message):
        require_length(15, window=20, horizon=1, windows=10, path=file)
    require_length(30, window=20, horizon=1, windows=10, path=file)


@settings(deadline=None, max_examples=30)
@given(length=st.integers(2, 30), window=st.integers(1, 10), horizon=st.integers(1, 5))
def test_windows_are_the_series(length: int, window: int, horizon: int) -> None:
    if length < window + horizon:
        return
    series = np.arange(float(length))
    inputs, expected = cut_windows(series, window=window, horizon=horizon)
    assert len(inputs) == length - window - horizon + 1
    assert (inputs[:, 0] == np.arange(len(inputs))).all()
    assert (expected[:, 0] == inputs[:, -1] + 1).all()
    assert expected.shape[1] == horizon


EUROPEAN = "Datum;Kurs;Menge\n03.01.2024;5.128,82;1.000\n02.01.2024;51,29;20\n01.01.2024;;3\n"


@pytest.mark.parametrize(
    ("text", "options", "values"),
    [
        ("close\n51,29\n5.128,82\n-0,5\n", {}, [51.29, 5128.82, -0.5]),
        ('x,y\n"5,128.82",1\n"1,234",2\n', {"column": "x"}, [5128.82, 1234]),
        ("x\n1.234.567\n1.000\n", {}, [1234567, 1000]),
        ("x;y\n1.000;0,5\n2.500;1,5\n", {"column": "x"}, [1000, 2500]),
        ("x\n1.234\n5.128\n", {}, [1.234, 5.128]),
        ("x\n5 128,82\n1\u202f000,5\n", {}, [5128.82, 1000.5]),
        ("x\n5'128.82\n7.5\n", {}, [5128.82, 7.5]),
        ("1,25\n2,5\n", {"decimal": "comma"}, [1.25, 2.5]),
        ("x;y\n1,234;a\n", {"column": "x", "decimal": "comma"}, [1.234]),
        ("x;y\n1,234;a\n", {"column": "x", "decimal": "point"}, [1234]),
        (EUROPEAN, {"column": "Kurs", "gaps": "drop"}, [51.29, 5128.82]),
        (EUROPEAN, {"column": "Menge"}, [3, 20, 1000]),
    ],
)
def test_numbers_are_read_as_their_country_writes_them(
    file: Path, text: str, options: dict[str, Any], values: list[float]
) -> None:
    file.write_text(text, encoding="utf-8")
    found = read_series_file(file, SeriesReading(**options))
    assert found.values[:, 0].tolist() == values


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x;y\n1,234;a\n", {"column": "x"}, "line 2: '1,234' may be 1234 or 1.234. Say which"),
        ("x;y\n1,5;a\n1.5;b\n", {"column": "x"}, "some numbers have a decimal comma and some"),
        ("x\n1\n\"\"\n2\n", {}, "Name"),
        ("x;y\n1;2\n;3\n", {"column": "x"}, "Fill gaps with --gaps interpolate, or leave such"),
        ("x;y\n;2\n;3\n", {"column": "x", "gaps": "drop"}, "a column holds no number"),
        ("x;y\n1;2\n", {"column": "x", "inputs": ("x",)}, "a column is named twice: x, x"),
        ("x;y\n1;2\n", {"column": "x", "inputs": ("z",)}, "there is no column 'z'"),
        ("d;x\nsoon;2\n", {"column": "x", "dates": "d"}, "holds 'soon', which is not a date"),
        ("x\n1.2.3\n", {}, "column 'x' holds '1.2.3', which is not a number"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_asked(
    file: Path, text: str, options: dict[str, Any], message: str
) -> None:
    file.write_text(text)
    if message == "Name":  # a blank line in a file of one column is no gap
        assert read_series_file(file, SeriesReading(**options)).values.size == 2
        return
    with pytest.raises(DataError) as error:
        read_series_file(file, SeriesReading(**options))
    assert message in str(error.value)


def test_dates_order_the_rows_and_several_columns_are_read(file: Path) -> None:
    file.write_text(EUROPEAN)
    reading = SeriesReading(column="Kurs", inputs=("Menge",), gaps="drop")
    found = read_series_file(file, reading)
    assert found.names == ("Kurs", "Menge")
    assert found.values.tolist() == [[51.29, 20], [5128.82, 1000]]
    assert found.times is not None
    assert [str(time)[:10] for time in found.times] == ["2024-01-02", "2024-01-03"]
    assert found.notes == (
        "The dates run backwards: the series was turned round.",
        "1 row with gaps left out.",
    )
    file.write_text("day,x\n2024-01-02,2\n2024-01-01,1\n2024-01-03,3\n")
    found = read_series_file(file, SeriesReading())
    assert found.values[:, 0].tolist() == [1, 2, 3]
    assert found.notes == ("The dates are not in order: the rows were sorted by them.",)


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["2024-01-31", "2024-02-29"], "2024-01-31"),
        (["2024-01", "2024-02"], "2024-01-01"),
        (["03/01/2024", "04/01/2024"], "2024-01-03"),
        (["01/30/2024", "01/31/2024"], "2024-01-30"),
        (["2024-01-31T10:30:00+02:00", "2024-01-31T11:30:00+02:00"], "2024-01-31"),
    ],
)
def test_dates_have_many_forms(file: Path, cells: list[str], first: str) -> None:
    file.write_text("when;x\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(cells)))
    times = read_series_file(file, SeriesReading()).times
    assert times is not None and str(times[0])[:10] == first


def test_years_are_dates_only_where_they_are_said_to_be(file: Path) -> None:
    file.write_text("year;x\n2001;5\n2002;6\n")
    with pytest.raises(DataError, match="there are 2 columns: year, x"):
        read_series_file(file, SeriesReading())
    times = read_series_file(file, SeriesReading(dates="year")).times
    assert times is not None and str(times[1])[:4] == "2002"


def test_gaps_are_interpolated_by_time(file: Path) -> None:
    file.write_text("d,x\n2024-01-01,1\n2024-01-02,\n2024-01-04,\n2024-01-05,4\n")
    found = read_series_file(file, SeriesReading(gaps="interpolate"))
    assert found.values[:, 0].tolist() == pytest.approx([1, 1.75, 3.25, 4])
    assert found.notes == ("2 gaps interpolated.",)
    file.write_text("x;y\n;1\n2;1\nNA;1\n4;1\nn/a;1\n")
    found = read_series_file(file, SeriesReading(column="x", gaps="interpolate"))
    assert found.values[:, 0].tolist() == [2, 3, 4]
    assert found.notes == ("1 gap interpolated.", "2 rows with gaps at the ends left out.")


@pytest.mark.parametrize("season", [2, 7, 12, 30])
def test_a_season_is_found_in_spite_of_trend_and_noise(season: int) -> None:
    random = np.random.default_rng(season)
    time = np.arange(20 * season)
    pattern = random.normal(size=season)
    values = 0.1 * time + 3 * pattern[time % season] + random.normal(size=len(time), scale=0.2)
    assert find_season(values) == season


def test_no_season_is_found_where_there_is_none() -> None:
    random = np.random.default_rng(1)
    for values in (random.normal(size=400), random.normal(size=400).cumsum(), np.arange(50.0) ** 2):
        assert find_season(values) is None
    assert find_season(np.ones(30)) is None and find_season(np.ones(2)) is None


def test_the_seasonal_forecast_looks_back_whole_seasons() -> None:
    values = np.arange(10.0)
    found = seasonal_forecast(values, np.array([6, 1]), season=3, horizon=5)
    assert found.tolist() == [[3, 4, 5, 3, 4], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("times", "following"),
    [
        (["2024-01-15", "2024-02-15", "2024-03-15"], ["2024-04-15", "2024-05-15"]),
        (["2023-11-30", "2023-12-31", "2024-01-31"], ["2024-02-29", "2024-03-31"]),
        (["2023-01-01", "2024-01-01"], ["2025-01-01", "2026-01-01"]),
        (["2024-01-01", "2024-01-08", "2024-01-15"], ["2024-01-22", "2024-01-29"]),
        ([f"2024-01-{d:02}" for d in (3, 4, 5, 8, 9, 10, 11, 12)], ["2024-01-15", "2024-01-16"]),
    ],
    ids=["months", "month ends", "years", "weeks", "weekdays"],
)
def test_future_dates_follow_the_past_ones(times: list[str], following: list[str]) -> None:
    found = future_times(np.array(times, dtype="datetime64[us]"), 2)
    assert [str(time)[:10] for time in found] == following


def test_the_season_of_a_long_series_is_that_of_its_end() -> None:
    steps = np.arange(260_000)
    values = np.where(steps < 50_000, np.sin(2 * np.pi * steps / 7), np.sin(np.pi * steps / 12))
    assert find_season(values) == 24
