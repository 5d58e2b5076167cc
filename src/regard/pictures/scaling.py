"""Scaling laws as straight lines: loss against parameters, data and compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from regard.base.errors import RegardError
from regard.pictures.canvas import FAINT, PALETTE, save_figure
from regard.pictures.curves import MARKERS
from regard.pictures.labels import plain_text, readable_label
from regard.pictures.studies import SUPERSCRIPTS

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class ScalingPanel:
    """Named points, and lines through them, on two logarithmic axes."""

    across: str
    up: str
    points: Mapping[str, Points]
    lines: Mapping[str, Points]


def draw_scaling(panels: Sequence[ScalingPanel], path: Path, *, title: str | None = None) -> None:
    """Draw panels side by side to PNG, SVG or PDF."""
    if not any(points for panel in panels for points in panel.points.values()):
        raise RegardError("there are no trainings to draw.")
    save_figure(partial(_scaling, panels, title), path)


def _scaling(panels: Sequence[ScalingPanel], title: str | None) -> Figure:
    figure = Figure(figsize=(4.2 * len(panels), 3.8))
    every_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(every_axes, panels, strict=True):
        for number, (name, points) in enumerate(panel.points.items()):
            axes.plot(
                *_columns(points),
                linestyle="none",
                color=PALETTE[number % len(PALETTE)],
                marker=MARKERS[number % len(MARKERS)],
                markersize=4.5,
                label=readable_label(name, longest=40),
            )
        for number, (name, points) in enumerate(panel.lines.items()):
            known = name in panel.points
            colour = PALETTE[[*panel.points].index(name) % len(PALETTE)] if known else FAINT
            label = None if known else readable_label(name, longest=40)
            style = "-" if known else ("--", ":")[number % 2]
            axes.plot(*_columns(points), color=colour, linewidth=1.4, linestyle=style, label=label)
        _set_axes(axes, panel)
    figure.subplots_adjust(wspace=0.36, bottom=0.28)
    if title is not None:
        figure.suptitle(plain_text(title), y=0.97)
    return figure


def _columns(points: Points) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _power(value: float) -> str:
    """Return a power of ten as people write it."""
    return "10" + str(round(math.log10(value))).translate(SUPERSCRIPTS)


def _set_axes(axes: Axes, panel: ScalingPanel) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(panel.across)
    axes.set_ylabel(panel.up)
    axes.xaxis.set_major_locator(LogLocator(10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: _power(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    if high < 30 * low and high < 100:
        ticks = [x for x in (1.2, 1.4, 1.6, 1.8, 2, 2.25, 2.5, 2.75, 3, 3.5) if low <= x <= high]
        axes.set_yticks(ticks)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y")
    axes.legend(fontsize=7.5, loc="best")
