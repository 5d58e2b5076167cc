"""A time series with its forecast, and the attention over the steps of the input window."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regard.pictures.canvas import FAINT, INK, PALETTE, Records, figure_svg, save_figure
from regard.pictures.labels import plain_text, readable_label

# A start that changes by less than this share of the whole range is not visible, and is left out.
VISIBLE = 2e-3
# More points would overlap; then only the end of the series is drawn.
MOST_POINTS = 400


class FutureBand(NamedTuple):
    """A forecast beyond the end of a series, and the interval in which it should lie."""

    values: Float[np.ndarray, "horizon"]
    low: Float[np.ndarray, "horizon"]
    high: Float[np.ndarray, "horizon"]
    times: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class ForecastPicture:
    """A series, forecasts from `places` on, their attention, and the future.

    `joined` forecasts are consecutive and drawn as a line, others as points. `times` are the dates
    of the series.
    """

    series: Float[np.ndarray, "time"]
    places: Int[np.ndarray, "windows"]
    forecast: Float[np.ndarray, "windows horizon"]
    weights: Float[np.ndarray, "windows window"] | None
    name: str
    joined: bool
    title: str | None = None
    times: np.ndarray | None = None
    future: FutureBand | None = None

    def at(self, places: Int[np.ndarray, "places"]) -> np.ndarray:
        """Return where these steps are on the time axis."""
        return places if self.times is None else self.times[places]

    def ahead(self) -> np.ndarray:
        """Return where the last value and the future ones are on the time axis."""
        last = np.array([len(self.series) - 1])
        horizon = 0 if self.future is None else len(self.future.values)
        if self.times is None or self.future is None or self.future.times is None:
            return np.arange(last[0], last[0] + horizon + 1)
        return np.concatenate([self.times[last], self.future.times])


def draw_forecast(picture: ForecastPicture, path: Path) -> None:
    """Draw a series and its forecasts to PNG, SVG or PDF; .csv and .json files get the numbers."""
    save_figure(partial(_forecast_figure, picture), path, data=partial(_records, picture))


def forecast_svg(picture: ForecastPicture) -> str:
    """Return the same picture as SVG text, for a page."""
    return figure_svg(partial(_forecast_figure, picture))


def _records(picture: ForecastPicture) -> Records:
    """Return a row for each time step; steps outside the tested windows have no forecast.

    The steps after the end have no value, but a forecast with its interval.
    """
    forecast = picture.forecast[:, 0].tolist()
    first_ahead = dict(zip(picture.places.tolist(), forecast, strict=True))
    labels = _labels(picture)
    known = [
        (labels[time], value, first_ahead.get(time), None, None)
        for time, value in enumerate(picture.series.tolist())
    ]
    if picture.future is None:
        return Records(("time", "series", "forecast"), [row[:3] for row in known])
    later = labels[len(known) :]
    bands = zip(*(part.tolist() for part in picture.future[:3]), strict=True)
    future = [(label, None, *band) for label, band in zip(later, bands, strict=True)]
    return Records(("time", "series", "forecast", "low", "high"), [*known, *future])


def _labels(picture: ForecastPicture) -> list[str | int]:
    """Return the name of each step and of the future ones: its date or its number."""
    if picture.times is None:
        return list(range(len(picture.series) + len(picture.ahead()) - 1))
    times = np.concatenate([picture.times, picture.ahead()[1:]])
    return [str(time.astype("datetime64[m]")).removesuffix("T00:00") for time in times]


def _forecast_figure(picture: ForecastPicture) -> Figure:
    rows = 1 if picture.weights is None else 2
    figure = Figure(figsize=(8.0, 3.3 * rows if rows == 1 else 5.6))
    panels = figure.subplots(rows, 1, squeeze=False, height_ratios=[3, 2][:rows])[:, 0]
    _draw_series(panels[0], picture)
    if picture.weights is not None:
        _draw_attention(panels[1], picture.weights)
        figure.subplots_adjust(hspace=0.5)
    if picture.title is not None:
        panels[0].set_title(plain_text(picture.title), pad=30 if picture.future is None else 50)
    for axes in panels:
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(length=0, pad=5)
    return figure


def _draw_series(axes: Axes, picture: ForecastPicture) -> None:
    """Draw the series and, on top of it, the forecast one step ahead and that of the future."""
    series, places, joined = picture.series, picture.places, picture.joined
    first = _first_to_show(series)
    shown = places >= first
    time = picture.at(np.arange(first, len(series)))
    axes.plot(time, series[first:], color=INK, linewidth=1.4, label="series", zorder=2)
    style = (
        {"linewidth": 1.6}
        if joined
        else {"linestyle": "none", "marker": "o", "markersize": 6, "markeredgecolor": "white"}
    )
    what = "forecast of the test part" if joined else "forecast of test windows"
    if picture.forecast.shape[1] > 1:
        what += f" (first of {picture.forecast.shape[1]} steps)"
    forecast = picture.forecast[shown, 0]
    axes.plot(picture.at(places[shown]), forecast, color=PALETTE[1], label=what, zorder=3, **style)
    if joined and places[0] > first:
        between = picture.at(places[:1] - 1)
        half = (picture.at(places[:1]) - between) / 2
        axes.axvline((between + half)[0], color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    if picture.future is not None:
        _draw_future(axes, picture, picture.future)
    if picture.times is None:
        axes.set_xlabel("time step")
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    else:
        locator = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.set_ylabel(readable_label(picture.name, longest=40))
    axes.margins(x=0.01)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, borderaxespad=0.2)


def _draw_future(axes: Axes, picture: ForecastPicture, future: FutureBand) -> None:
    """Draw the forecast beyond the end of the series, from its last value on."""
    ahead, last = picture.ahead(), picture.series[-1:]
    values, low, high = (np.concatenate([last, part]) for part in future[:3])
    axes.fill_between(
        ahead, low, high, color=PALETTE[2], alpha=0.25, linewidth=0, label="90 % of past errors"
    )
    axes.plot(ahead, values, color=PALETTE[2], linewidth=1.6, label="future", zorder=3)
    axes.plot(ahead[1:], values[1:], "o", color=PALETTE[2], markersize=3.5, zorder=3)


def _draw_attention(axes: Axes, weights: Float[np.ndarray, "windows window"]) -> None:
    """Draw the mean weight of each step of the window, and the range over the windows."""
    window = weights.shape[1]
    back = np.arange(window) - window  # from -window to -1: the last value read is one step back
    mean = weights.mean(axis=0)
    axes.bar(back, mean, width=0.75, color=PALETTE[0], label="mean weight", zorder=2)
    low, high = np.quantile(weights, [0.05, 0.95], axis=0)
    if (high - low).max() > 1e-6:
        axes.vlines(
            back, low, high, color=INK, linewidth=1.4, zorder=3, label="5 to 95 % of windows"
        )
    axes.axhline(0, color=FAINT, linewidth=0.8)
    axes.set_xlabel("time step of the window, counted back from the forecast")
    axes.set_ylabel("attention")
    axes.xaxis.set_major_locator(MaxNLocator(min(window, 20), integer=True))
    axes.margins(x=0.01)
    handles, names = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1],
        names[::-1],
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=2,
        borderaxespad=0.2,
    )


def _first_to_show(series: Float[np.ndarray, "time"]) -> int:
    """Return the first step to draw: where the series starts to change, or near its end."""
    moved = np.abs(series - series[0]) > VISIBLE * np.ptp(series)
    begins = max(0, int(moved.argmax()) - 5)
    return max(begins, len(series) - MOST_POINTS)
