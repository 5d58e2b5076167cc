"""How far back a loss is felt: gradient norms against distance, before and after training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regard.base.errors import RegardError
from regard.pictures.canvas import save_figure
from regard.pictures.colours import PALETTE
from regard.pictures.curves import MARKERS
from regard.pictures.labelled_map import plain_text
from regard.pictures.records import Records

# Smaller norms cannot be told from rounding, and would squeeze everything else.
LEAST = 1e-16
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def draw_gradients(
    panels: Mapping[str, Mapping[str, Sequence[float]]], path: Path, *, title: str | None = None
) -> None:
    """Draw a panel for each moment, a curve for each network; or write the norms as data."""
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
    """Return 0.01 as 10⁻²; labels are plain text, so that words may hold dollars."""
    exponent = str(round(math.log10(value))) if value > 0 else ""
    return "10" + exponent.translate(RAISED)
