"""A time series with its forecast, and the attention over the steps of the input window."""

from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regard.pictures.canvas import FAINT, INK, PALETTE, Records, figure_svg, save_figure
from regard.pictures.labels import plain_text, readable_label

# A start that changes by less than this share of the whole range is not visible, and is left out.
VISIBLE = 2e-3
# More points would overlap; then only the end of the series is drawn.
MOST_POINTS = 400


def draw_forecast(
    series: Float[np.ndarray, "time"],
    *,
    places: Int[np.ndarray, "windows"],
    forecast: Float[np.ndarray, "windows horizon"],
    weights: Float[np.ndarray, "windows window"] | None,
    path: Path,
    name: str,
    joined: bool,
    title: str | None = None,
) -> None:
    """Draw a series, forecasts from `places` on, and their attention, to PNG, SVG or PDF.

    `joined` forecasts are consecutive and drawn as a line, others as points. A .csv or .json file
    gets the numbers of the series and of the forecasts.
    """
    draw = partial(
        _forecast_figure, series, places, forecast, weights, name=name, joined=joined, title=title
    )
    save_figure(draw, path, data=partial(_records, series, places, forecast))


def forecast_svg(
    series: Float[np.ndarray, "time"],
    *,
    places: Int[np.ndarray, "windows"],
    forecast: Float[np.ndarray, "windows horizon"],
    weights: Float[np.ndarray, "windows window"] | None,
    name: str,
    joined: bool,
    title: str | None = None,
) -> str:
    """Return the same picture as SVG text, for a page."""
    return figure_svg(
        partial(
            _forecast_figure,
            series,
            places,
            forecast,
            weights,
            name=name,
            joined=joined,
            title=title,
        )
    )


def _records(
    series: Float[np.ndarray, "time"],
    places: Int[np.ndarray, "windows"],
    forecast: Float[np.ndarray, "windows horizon"],
) -> Records:
    """Return a row for each time step; steps outside the tested windows have no forecast."""
    first_ahead = dict(zip(places.tolist(), forecast[:, 0].tolist(), strict=True))
    rows = [(time, value, first_ahead.get(time)) for time, value in enumerate(series.tolist())]
    return Records(("time", "series", "forecast"), rows)


def _forecast_figure(
    series: Float[np.ndarray, "time"],
    places: Int[np.ndarray, "windows"],
    forecast: Float[np.ndarray, "windows horizon"],
    weights: Float[np.ndarray, "windows window"] | None,
    *,
    name: str,
    joined: bool,
    title: str | None,
) -> Figure:
    rows = 1 if weights is None else 2
    figure = Figure(figsize=(8.0, 3.3 * rows if rows == 1 else 5.6))
    panels = figure.subplots(rows, 1, squeeze=False, height_ratios=[3, 2][:rows])[:, 0]
    _draw_series(panels[0], series, places, forecast, name=name, joined=joined)
    if weights is not None:
        _draw_attention(panels[1], weights)
        figure.subplots_adjust(hspace=0.5)
    if title is not None:
        panels[0].set_title(plain_text(title), pad=30)
    for axes in panels:
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(length=0, pad=5)
    return figure


def _draw_series(
    axes: Axes,
    series: Float[np.ndarray, "time"],
    places: Int[np.ndarray, "windows"],
    forecast: Float[np.ndarray, "windows horizon"],
    *,
    name: str,
    joined: bool,
) -> None:
    """Draw the series and, on top of it, the forecast one step ahead."""
    first = _first_to_show(series)
    shown = places >= first
    time = np.arange(first, len(series))
    axes.plot(time, series[first:], color=INK, linewidth=1.4, label="series", zorder=2)
    style = (
        {"linewidth": 1.6}
        if joined
        else {"linestyle": "none", "marker": "o", "markersize": 6, "markeredgecolor": "white"}
    )
    what = "forecast of the test part" if joined else "forecast of test windows"
    if forecast.shape[1] > 1:
        what += f" (first of {forecast.shape[1]} steps)"
    axes.plot(places[shown], forecast[shown, 0], color=PALETTE[1], label=what, zorder=3, **style)
    if joined and places[0] > first:
        axes.axvline(places[0] - 0.5, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xlabel("time step")
    axes.set_ylabel(readable_label(name, longest=40))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.margins(x=0.01)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, borderaxespad=0.2)


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
