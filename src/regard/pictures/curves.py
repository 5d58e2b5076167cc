"""Curves that compare models: BLEU against sentence length, and learning over steps or time."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regard.base.errors import RegardError
from regard.pictures.canvas import PALETTE, Records, figure_svg, save_figure, write_records
from regard.pictures.labels import plain_text, readable_label
from regard.scoring.bleu import Band
from regard.scoring.bootstrap import BandWithInterval

# Rows of `metrics.jsonl`: {"kind": "train" | "valid", "step": 20, "seconds": 3.1, "loss": 4.2, ...}
History: TypeAlias = Sequence[Mapping[str, Any]]
Against: TypeAlias = Literal["step", "minutes"]
AnyBand = TypeVar("AnyBand", Band, BandWithInterval)

MARKERS = "osD^vPX*"
MOST_MARKERS = 25  # more would hide the curve
# What validation measures in addition to the loss, with its label; the first one found is drawn.
MEASURES = {
    "bleu": "BLEU",
    "accuracy": "accuracy",
    "bits_per_character": "bits a character",
    "perplexity": "perplexity",
}


def draw_length_curves(
    bands: Mapping[str, Sequence[Band]], path: Path, *, title: str | None = None
) -> None:
    """Draw BLEU against source length, a curve for each named model; or write the data."""
    known = _require_bands(bands)
    save_figure(partial(_length_curves, known, title), path, data=partial(_length_records, known))


def length_curves_svg(bands: Mapping[str, Sequence[Band]], *, title: str | None = None) -> str:
    """Return BLEU against source length as SVG text, for a page."""
    return figure_svg(partial(_length_curves, _require_bands(bands), title))


def draw_learning_curves(
    histories: Mapping[str, History],
    path: Path,
    *,
    against: Against = "step",
    title: str | None = None,
) -> None:
    """Draw the losses and the validation measure of each named model.

    The suffix of the file chooses PNG, SVG or PDF, or CSV or JSON for the numbers.
    """
    known = _require_history(histories)
    draw = partial(_learning_curves, known, against, title)
    save_figure(draw, path, data=partial(_learning_records, known))


def learning_curves_svg(
    histories: Mapping[str, History], *, against: Against = "step", title: str | None = None
) -> str:
    """Return learning curves as SVG text, for a page."""
    return figure_svg(partial(_learning_curves, _require_history(histories), against, title))


def _length_curves(bands: Mapping[str, Sequence[Band]], title: str | None) -> Figure:
    """Draw bands of any width at equal distances; a band without a score leaves a gap."""
    every_band = {(band.low, band.high): band for each in bands.values() for band in each}
    places = {ends: place for place, ends in enumerate(sorted(every_band))}

    figure = Figure(figsize=(min(10.0, max(5.6, 1.0 + 0.85 * len(places))), 3.5))
    axes = figure.subplots()
    for number, (name, model_bands) in enumerate(bands.items()):
        scores = [math.nan] * len(places)
        for band in model_bands:
            if band.score is not None:
                scores[places[band.low, band.high]] = band.score.value
        _curve(axes, number, name, [float(place) for place in places.values()], scores)
    axes.set_xticks(range(len(places)), [every_band[ends].label for ends in places])
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.set_xlabel("words in the source sentence")
    axes.set_ylabel("BLEU")
    axes.set_ylim(bottom=0, top=min(104.0, axes.get_ylim()[1] + 4))
    _finish(figure, [axes], title)
    return figure


def _length_records(bands: Mapping[str, Sequence[Band]]) -> Records:
    rows = [
        (name, band.low, band.high, band.sentences, band.score.value if band.score else None)
        for name, each in bands.items()
        for band in each
    ]
    return Records(("model", "low", "high", "sentences", "bleu"), rows)


def _learning_records(histories: Mapping[str, History]) -> Records:
    """Return the rows of all histories under the union of their columns."""
    found = {key: None for rows in histories.values() for row in rows for key in row}
    rows = [
        (name, *(row.get(key) for key in found)) for name, rows in histories.items() for row in rows
    ]
    return Records(("model", *found), rows)


def _learning_curves(
    histories: Mapping[str, History], against: Against, title: str | None
) -> Figure:
    """Draw losses on the left and the validation measure, if there is one, on the right."""
    measure = _measure(histories)
    figure = Figure(figsize=(8.6 if measure else 5.6, 3.5))
    panels = list(figure.subplots(1, 2 if measure else 1, squeeze=False)[0])
    for number, (name, rows) in enumerate(histories.items()):
        colour = PALETTE[number % len(PALETTE)]
        places, losses = _points(rows, "train", "loss", against)
        panels[0].plot(places, losses, color=colour, linewidth=1.0, alpha=0.45)
        _curve(panels[0], number, name, *_points(rows, "valid", "loss", against))
        if measure:
            _curve(panels[1], number, name, *_points(rows, "valid", measure, against))
    panels[0].set_ylabel("loss (thin: training, marked: validation)")
    panels[0].set_ylim(bottom=0)
    if measure:
        panels[1].set_ylabel(f"validation {MEASURES[measure]}")
        panels[1].set_ylim(bottom=0)
    for axes in panels:
        axes.set_xlabel("updates" if against == "step" else "minutes of training")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=against == "step"))
        axes.set_xlim(left=0)
    figure.subplots_adjust(wspace=0.28)
    _finish(figure, panels, title)
    return figure


def _measure(histories: Mapping[str, History]) -> str | None:
    """Return the first of the known measures that any validation has."""
    every = [row for rows in histories.values() for row in rows if row.get("kind") == "valid"]
    return next((name for name in MEASURES if any(name in row for row in every)), None)


def _curve(
    axes: Axes, number: int, name: str, places: Sequence[float], values: Sequence[float]
) -> None:
    """Draw one model's curve in its own colour and with its own marker."""
    axes.plot(
        places,
        values,
        color=PALETTE[number % len(PALETTE)],
        marker=MARKERS[number % len(MARKERS)],
        markersize=5,
        markevery=max(1, len(places) // MOST_MARKERS),
        linewidth=2,
        label=readable_label(name),
        clip_on=False,
        zorder=3,
    )


def _finish(figure: Figure, panels: Sequence[Axes], title: str | None) -> None:
    """Add rules, the legend above the first panel, and the title above that."""
    for axes in panels:
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(length=0, pad=5)
    handles, names = panels[0].get_legend_handles_labels()
    panels[0].legend(
        handles,
        names,
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=min(4, len(names)),
        borderaxespad=0.2,
        handlelength=1.6,
    )
    if title is not None:
        rows_of_legend = math.ceil(len(names) / 4)
        panels[0].set_title(plain_text(title), pad=12 + 15 * rows_of_legend)


def _points(
    rows: History, kind: str, value: str, against: Against
) -> tuple[list[float], list[float]]:
    """Return the x and y values of a curve; rows without the value are skipped."""
    places, heights = [], []
    for row in rows:
        height = row.get(value)
        if row.get("kind") == kind and isinstance(height, int | float) and math.isfinite(height):
            places.append(float(row["step"] if against == "step" else row["seconds"] / 60))
            heights.append(float(height))
    return places, heights


def _require_bands(bands: Mapping[str, Sequence[AnyBand]]) -> Mapping[str, Sequence[AnyBand]]:
    if not any(bands.values()):
        raise RegardError("there are no length bands to draw.")
    return bands


def _require_history(histories: Mapping[str, History]) -> Mapping[str, History]:
    if not any(histories.values()):
        raise RegardError("there is no training history to draw.")
    return histories


LEGEND_COLUMNS = 3


def draw_interval_curves(
    bands: Mapping[str, Sequence[BandWithInterval]], path: Path, *, title: str | None = None
) -> None:
    """Draw a curve and its bootstrap interval for each named model to PNG, SVG or PDF."""
    save_figure(partial(_interval_curves, _require_bands(bands), title), path)


def interval_curves_svg(
    bands: Mapping[str, Sequence[BandWithInterval]], *, title: str | None = None
) -> str:
    """Return the same picture as SVG text, for a page."""
    return figure_svg(partial(_interval_curves, _require_bands(bands), title))


def write_interval_curves(bands: Mapping[str, Sequence[BandWithInterval]], path: Path) -> None:
    """Write the numbers behind the picture as CSV or JSON, a row for each model and band."""
    rows = [
        {"model": name, **band.to_dict()}
        for name, each in _require_bands(bands).items()
        for band in each
    ]
    write_records(Records(tuple(rows[0]), [list(row.values()) for row in rows]), path)


def _interval_curves(bands: Mapping[str, Sequence[BandWithInterval]], title: str | None) -> Figure:
    """Draw bands of any width at equal distances."""
    every = {(one.band.low, one.band.high): one.band for each in bands.values() for one in each}
    places = {ends: place for place, ends in enumerate(sorted(every))}
    figure = Figure(figsize=(min(10.0, max(7.6, 1.0 + 0.95 * len(places))), 4.4))
    axes = figure.subplots()
    for number, (name, each) in enumerate(bands.items()):
        _interval_curve(
            axes, number, name, {places[one.band.low, one.band.high]: one for one in each}
        )
    axes.set_xticks(range(len(places)), [every[ends].label for ends in places])
    axes.set_xlim(-0.3, len(places) - 0.7)
    axes.set_ylim(bottom=0, top=min(102.0, axes.get_ylim()[1] + 2))
    axes.set_xlabel("words in the source sentence")
    axes.set_ylabel("BLEU (shaded: 95 % of resampled test sets)")
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0, pad=5)
    columns = min(LEGEND_COLUMNS, len(bands))
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.01),
        ncols=columns,
        borderaxespad=0.2,
        handlelength=1.8,
        columnspacing=1.6,
    )
    if title is not None:
        axes.set_title(plain_text(title), pad=14 + 15 * math.ceil(len(bands) / columns))
    return figure


def _interval_curve(
    axes: Axes, number: int, name: str, points: Mapping[int, BandWithInterval]
) -> None:
    """Draw one model in its own colour and with its own marker; empty bands leave a gap."""
    colour = PALETTE[number % len(PALETTE)]
    places = sorted(points)
    rows = [points[place].to_dict() for place in places]
    values, lows, highs = (
        [math.nan if row[key] is None else float(row[key]) for row in rows]
        for key in ("bleu", "bleu_low", "bleu_high")
    )
    axes.fill_between(places, lows, highs, color=colour, alpha=0.16, linewidth=0)
    axes.plot(
        places,
        values,
        color=colour,
        marker=MARKERS[number % len(MARKERS)],
        markersize=5,
        linewidth=2,
        label=readable_label(name, longest=40),
        clip_on=False,
        zorder=3,
    )
