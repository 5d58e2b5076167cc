"""The ladder as bars: how much of the task each rung solves, with its size and time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.pictures.canvas import save_figure
from regard.pictures.colours import FAINT, INK, PALETTE
from regard.pictures.labelled_map import plain_text
from regard.pictures.records import Records

# How the papers' symbols look in a picture, longest first.
SYMBOLS = {
    "h_{t-1}": "hₜ₋₁",
    "sum_i": "Σᵢ",
    "alpha_i": "αᵢ",
    "h~": "h\u0303",
    "_t": "ₜ",
    "_i": "ᵢ",
}


class Step(NamedTuple):
    """One bar of the picture."""

    label: str
    formula: str
    accuracy: float
    note: str


def draw_ladder(
    steps: Sequence[Step],
    path: Path,
    *,
    levels: Sequence[tuple[str, float]] = (),
    title: str | None = None,
) -> None:
    """Draw a bar a rung, with named levels such as chance; or write its data."""
    if not steps:
        raise RegardError("there are no rungs to draw.")
    save_figure(
        partial(_ladder, steps, levels, title), path, data=lambda: Records(Step._fields, steps)
    )


def _ladder(
    steps: Sequence[Step], levels: Sequence[tuple[str, float]], title: str | None
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
        places, [f"{step.label}\n{_in_symbols(step.formula)}" for step in steps], fontsize=9
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


def _in_symbols(formula: str) -> str:
    for name, symbol in SYMBOLS.items():
        formula = formula.replace(name, symbol)
    return formula
