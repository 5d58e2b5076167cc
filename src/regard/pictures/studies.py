"""Pictures of studies: the ladder, vanishing gradients, curves by length, evidence of words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from regard.base.errors import RegardError
from regard.pictures.canvas import FAINT, INK, PALETTE, Records, save_figure
from regard.pictures.curves import MARKERS
from regard.pictures.labels import plain_text, readable_label

# Mathematical notation in plain text and in pictures, the longest first.
NOTATION = {
    "h_{t-1}": "hₜ₋₁",
    "sum_i": "Σᵢ",
    "alpha_i": "αᵢ",
    "h~": "h\u0303",
    "_t": "ₜ",
    "_i": "ᵢ",
}


class LadderBar(NamedTuple):
    """A step of the ladder, drawn as a bar."""

    label: str
    formula: str
    accuracy: float
    note: str


def draw_ladder(
    steps: Sequence[LadderBar],
    path: Path,
    *,
    levels: Sequence[tuple[str, float]] = (),
    title: str | None = None,
) -> None:
    """Draw a bar for each step, with named levels such as chance; or write the data."""
    if not steps:
        raise RegardError("there are no steps to draw.")
    save_figure(
        partial(_ladder, steps, levels, title), path, data=lambda: Records(LadderBar._fields, steps)
    )


def _ladder(
    steps: Sequence[LadderBar], levels: Sequence[tuple[str, float]], title: str | None
) -> Figure:
    figure = Figure(figsize=(7.4, 0.62 * len(steps) + 0.9))
    axes = figure.subplots()
    places = range(len(steps))
    accuracies = [100 * step.accuracy for step in steps]
    axes.barh(places, accuracies, height=0.62, color=PALETTE[0], zorder=2)
    for place, step in zip(places, steps, strict=True):
        inside = step.accuracy > 0.2
        axes.text(
            100 * step.accuracy - 1 if inside else 100 * step.accuracy + 1,
            place,
            f"{100 * step.accuracy:.1f} %",
            ha="right" if inside else "left",
            va="center",
            color="white" if inside else INK,
            fontweight="bold",
            zorder=4,
        )
        axes.text(103, place, step.note, va="center", color=FAINT, fontsize=9)
    for name, level in levels:
        axes.axvline(100 * level, color=INK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=3)
        axes.text(100 * level, -0.62, name, ha="center", va="bottom", fontsize=9)
    axes.set_yticks(
        places, [f"{step.label}\n{_typeset(step.formula)}" for step in steps], fontsize=9
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("right answers, %")
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0, pad=6)
    if title is not None:
        axes.set_title(plain_text(title), pad=22, x=-0.0)
    return figure


def _typeset(formula: str) -> str:
    for name, symbol in NOTATION.items():
        formula = formula.replace(name, symbol)
    return formula


# Smaller norms are rounding errors, and would compress everything else.
LEAST = 1e-16
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def draw_gradients(
    panels: Mapping[str, Mapping[str, Sequence[float]]], path: Path, *, title: str | None = None
) -> None:
    """Draw a panel for each moment with a curve for each network; or write the norms as data."""
    if not any(panels.values()):
        raise RegardError("there are no gradients to draw.")
    save_figure(partial(_gradients, panels, title), path, data=partial(_records, panels))


def _records(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Records:
    rows = [
        (moment, name, distance, float(norm))
        for moment, curves in panels.items()
        for name, norms in curves.items()
        for distance, norm in enumerate(norms)
    ]
    return Records(("moment", "network", "distance", "norm"), rows)


def _gradients(panels: Mapping[str, Mapping[str, Sequence[float]]], title: str | None) -> Figure:
    figure = Figure(figsize=(4.6 * len(panels), 3.7))
    every_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (moment, curves) in zip(every_axes, panels.items(), strict=True):
        for number, (name, norms) in enumerate(curves.items()):
            values = np.asarray(norms, dtype=np.float64)
            values = np.where(values < LEAST, np.nan, values)
            axes.semilogy(
                np.arange(len(values)),
                values,
                color=PALETTE[number % len(PALETTE)],
                marker=MARKERS[number % len(MARKERS)],
                markevery=max(1, len(values) // 8),
                markersize=5,
                linewidth=2,
                label=plain_text(name),
                zorder=3,
            )
        axes.set_title(plain_text(moment), fontsize=10, fontweight="normal", pad=8)
        axes.set_xlabel("steps between state and loss")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_formatter(_power_of_ten)
        axes.grid(axis="y")
        axes.spines["left"].set_visible(False)
        axes.tick_params(length=0, pad=5, which="both")
    every_axes[0].set_ylabel("norm of d loss / d state")
    handles, names = every_axes[0].get_legend_handles_labels()
    figure.subplots_adjust(wspace=0.08, top=0.78)
    figure.legend(handles, names, loc="upper left", bbox_to_anchor=(0.115, 0.945), ncols=len(names))
    if title is not None:
        figure.text(0.125, 0.965, plain_text(title), fontsize=11, fontweight="bold")
    return figure


def _power_of_ten(value: float, place: int) -> str:
    """Return 0.01 as 10⁻²; labels are plain text because words may contain dollar signs."""
    exponent = str(round(math.log10(value))) if value > 0 else ""
    return "10" + exponent.translate(SUPERSCRIPTS)


Curve = Mapping[int, float]


@dataclass(frozen=True, kw_only=True)
class LengthPanel:
    """A panel with named curves of a value against length."""

    label: str
    curves: Mapping[str, Curve]
    top: float | None = None
    """The upper end of the axis, or None to fit the curves."""
    powers: bool = False
    """Whether both axes are logarithmic, so that a power of the length is a straight line."""


def draw_by_length(
    panels: Sequence[LengthPanel],
    path: Path,
    *,
    mark: tuple[int, str] | None = None,
    title: str | None = None,
) -> None:
    """Draw panels side by side to PNG, SVG or PDF; `mark` is a length and a note about it."""
    if not any(curve for panel in panels for curve in panel.curves.values()):
        raise RegardError("there are no lengths to draw.")
    save_figure(partial(_by_length, panels, mark, title), path)


def _by_length(
    panels: Sequence[LengthPanel], mark: tuple[int, str] | None, title: str | None
) -> Figure:
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


def _set_scales(axes: Axes, panel: LengthPanel, lengths: Sequence[int]) -> None:
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


def draw_evidence(
    words: Sequence[str], values: Sequence[float], *, path: Path, title: str | None = None
) -> None:
    """Draw a bar for each word of a text, to the right for a label and to the left against it."""
    if not words:
        raise RegardError("there are no words to draw.")
    rows = list(zip(words, values, strict=True))
    save_figure(
        partial(_evidence, rows, title), path, data=lambda: Records(("word", "value"), rows)
    )


def _evidence(rows: Sequence[tuple[str, float]], title: str | None) -> Figure:
    figure = Figure(figsize=(6.0, 0.26 * len(rows) + 0.7))
    axes = figure.subplots()
    places = range(len(rows))
    values = [value for _, value in rows]
    colours = [PALETTE[0] if value > 0 else PALETTE[1] for value in values]
    axes.barh(places, values, height=0.72, color=colours, zorder=2)
    axes.axvline(0, color=FAINT, linewidth=0.8)
    axes.set_yticks(places, [readable_label(word) for word, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left"]].set_visible(False)
    axes.set_xlabel("fall of the log-odds without the word")
    axes.grid(axis="x")
    if title is not None:
        axes.set_title(plain_text(title))
    return figure
