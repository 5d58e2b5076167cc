"""Curves against the length of a sequence: accuracy beyond training, cost, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from regard.base.errors import RegardError
from regard.pictures.canvas import save_figure
from regard.pictures.colours import FAINT, PALETTE
from regard.pictures.curves import MARKERS
from regard.pictures.labelled_map import plain_text, readable_label

Curve = Mapping[int, float]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What one part of the picture shows: named curves of a value against length."""

    label: str
    curves: Mapping[str, Curve]
    top: float | None = None
    """The highest value that there can be, if there is one."""
    powers: bool = False
    """Both axes in powers, so that a straight line is a power of the length."""


def draw_by_length(
    panels: Sequence[Panel],
    path: Path,
    *,
    mark: tuple[int, str] | None = None,
    title: str | None = None,
) -> None:
    """Draw panels side by side to PNG, SVG or PDF; `mark` is a length to point out, and why."""
    if not any(curve for panel in panels for curve in panel.curves.values()):
        raise RegardError("there are no lengths to draw.")
    save_figure(partial(_by_length, panels, mark, title), path)


def _by_length(panels: Sequence[Panel], mark: tuple[int, str] | None, title: str | None) -> Figure:
    figure = Figure(figsize=(6.4 if len(panels) == 1 else 4.6 * len(panels), 3.6))
    every_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(every_axes, panels, strict=True):
        for number, (name, curve) in enumerate(panel.curves.items()):
            _draw_curve(axes, number, name, curve)
        lengths = sorted({length for curve in panel.curves.values() for length in curve})
        _set_scales(axes, panel, lengths)
        if mark is not None:
            _point_out(axes, *mark)
        axes.set_xlabel("length of the sequence")
        axes.set_ylabel(panel.label)
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(length=0, pad=5, which="both")
    handles, names = every_axes[0].get_legend_handles_labels()
    columns = min(3 if len(panels) == 1 else 2 * len(panels), len(names))
    rows = -(-len(names) // columns)
    figure.subplots_adjust(wspace=0.32)
    every_axes[0].legend(
        handles,
        names,
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.06),
        ncols=columns,
        borderaxespad=0.2,
        handlelength=1.6,
    )
    if title is not None:
        every_axes[0].set_title(plain_text(title), pad=24 + 15 * rows)
    return figure


def _draw_curve(axes: Axes, number: int, name: str, curve: Curve) -> None:
    places = sorted(curve)
    axes.plot(
        places,
        [curve[place] for place in places],
        color=PALETTE[number % len(PALETTE)],
        marker=MARKERS[number % len(MARKERS)],
        markersize=5,
        linewidth=2,
        label=readable_label(name, longest=40),
        clip_on=False,
        zorder=3,
    )


def _set_scales(axes: Axes, panel: Panel, lengths: Sequence[int]) -> None:
    if panel.powers:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.6g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, panel.top)
    axes.set_xticks(lengths, [f"{length}" for length in lengths])


def _point_out(axes: Axes, length: int, why: str) -> None:
    axes.axvline(length, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate(
        plain_text(why),
        (length, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(4, 2),
        textcoords="offset points",
        fontsize=8,
        color=FAINT,
    )
