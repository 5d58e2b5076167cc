from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import DataError
from regard.corpora.series import (
    cut_windows,
    fibonacci,
    read_column,
    require_length,
    scaled_series,
)


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
    found, numbers = read_column(file, column)
    assert found == name
    assert numbers.tolist() == values
    assert numbers.dtype == np.float64


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
            "It should hold a header line and one row of numbers per line",
        ),
    ],
)
def test_what_is_wrong_is_said(file: Path, text: str, column: str | None, message: str) -> None:
    file.write_text(text)
    with pytest.raises(DataError) as error:
        read_column(file, column)
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
