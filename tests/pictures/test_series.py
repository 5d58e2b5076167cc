from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.pictures.series import (
    MOST_POINTS,
    ForecastPicture,
    FutureBand,
    draw_forecast,
    forecast_svg,
)


def draw(path: Path, *, weights: bool, joined: bool, length: int = 80, **more: Any) -> str:
    series = np.sin(np.arange(float(length)))
    places = np.arange(length - 20, length)
    picture = ForecastPicture(
        series=series,
        places=places,
        forecast=series[places, None] + 0.1,
        weights=np.random.default_rng(1).dirichlet(np.ones(10), 20) if weights else None,
        name="height of $water$",
        joined=joined,
        title="a title",
    )
    draw_forecast(replace(picture, **more), path)
    return path.read_text()


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("joined", [True, False])
def test_series_forecast_and_attention_are_drawn(
    tmp_path: Path, weights: bool, joined: bool
) -> None:
    text = draw(tmp_path / "x.svg", weights=weights, joined=joined)
    assert "height of $water$" in text
    assert "a title" in text
    assert ("attention" in text) == weights
    assert ("forecast of the test part" in text) == joined


def test_the_same_picture_has_the_same_bytes(tmp_path: Path) -> None:
    pictures = [draw(tmp_path / f"{n}.svg", weights=True, joined=True) for n in (1, 2)]
    assert pictures[0] == pictures[1]


def points_drawn(series: np.ndarray) -> int:
    """Return how many points of a series are drawn; lines are not simplified if they zigzag."""
    svg = forecast_svg(
        ForecastPicture(
            series=series,
            places=np.array([len(series) - 1]),
            forecast=series[-1:, None],
            weights=None,
            name="x",
            joined=False,
        )
    )
    line = max(re.findall(r'<path d="([^"]+)"[^>]*stroke: #1f2328', svg), key=len)
    return len(re.findall("[ML]", line))


def test_only_the_part_that_is_visible_is_drawn() -> None:
    zigzag = np.resize([0.0, 1.0], 1000)
    assert points_drawn(zigzag[:50]) == 50
    assert points_drawn(zigzag) == pytest.approx(MOST_POINTS, abs=1)
    growing = np.concatenate([np.zeros(80), zigzag[:20]])
    assert 20 <= points_drawn(growing) <= 27


def test_the_data_can_be_written_as_a_table(tmp_path: Path) -> None:
    lines = draw(tmp_path / "x.csv", weights=False, joined=True).splitlines()
    assert lines[0] == "time,series,forecast"
    assert len(lines) == 81
    assert lines[60].endswith(",")
    assert float(lines[61].split(",")[2]) == pytest.approx(np.sin(60) + 0.1)


def test_dates_are_on_the_axis_and_the_future_has_its_interval(tmp_path: Path) -> None:
    days = np.arange("2024-01-01", "2024-03-21", dtype="datetime64[D]").astype("datetime64[us]")
    ends = np.array(["2024-03-21", "2024-03-22"], dtype="datetime64[us]")
    future = FutureBand(np.array([1.0, 2.0]), np.array([0.5, 1.0]), np.array([1.5, 3.0]), ends)
    given = {"weights": False, "joined": True, "times": days, "future": future}
    text = draw(tmp_path / "x.svg", **given)
    assert "90 % of past errors" in text and "Feb" in text and "time step" not in text
    lines = draw(tmp_path / "x.csv", **given).splitlines()
    assert lines[0] == "time,series,forecast,low,high"
    assert lines[1].startswith("2024-01-01,0.0,")
    assert lines[-1] == "2024-03-22,,2.0,1.0,3.0"
