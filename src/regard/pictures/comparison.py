"""BLEU against sentence length for several models, each with the band in which it is sure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.pictures.canvas import figure_svg, save_figure
from regard.pictures.colours import PALETTE
from regard.pictures.curves import MARKERS
from regard.pictures.labelled_map import plain_text, readable_label
from regard.pictures.records import Records, write_records
from regard.scoring.bootstrap import SureBand

LEGEND_COLUMNS = 3


def draw_sure_curves(
    bands: Mapping[str, Sequence[SureBand]], path: Path, *, title: str | None = None
) -> None:
    """Draw a curve and its bootstrap band for each named model to PNG, SVG or PDF."""
    save_figure(partial(_curves, _some(bands), title), path)


def sure_curves_svg(bands: Mapping[str, Sequence[SureBand]], *, title: str | None = None) -> str:
    """Return the same as SVG text, to stand in a page."""
    return figure_svg(partial(_curves, _some(bands), title))


def write_sure_curves(bands: Mapping[str, Sequence[SureBand]], path: Path) -> None:
    """Write the numbers behind the picture as CSV or JSON, a row for each model and band."""
    rows = [
        {"model": name, **band.to_dict()} for name, each in _some(bands).items() for band in each
    ]
    write_records(Records(tuple(rows[0]), [list(row.values()) for row in rows]), path)


def _curves(bands: Mapping[str, Sequence[SureBand]], title: str | None) -> Figure:
    """Draw the bands of length side by side, however wide each is."""
    every = {(one.band.low, one.band.high): one.band for each in bands.values() for one in each}
    places = {ends: place for place, ends in enumerate(sorted(every))}
    figure = Figure(figsize=(min(10.0, max(7.6, 1.0 + 0.95 * len(places))), 4.4))
    axes = figure.subplots()
    for number, (name, each) in enumerate(bands.items()):
        _curve(axes, number, name, {places[one.band.low, one.band.high]: one for one in each})
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


def _curve(axes: Axes, number: int, name: str, points: Mapping[int, SureBand]) -> None:
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


def _some(bands: Mapping[str, Sequence[SureBand]]) -> Mapping[str, Sequence[SureBand]]:
    if not any(bands.values()):
        raise RegardError("there are no length bands to draw.")
    return bands
