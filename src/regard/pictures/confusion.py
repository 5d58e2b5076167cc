"""The confusion matrix: how many examples of each label got which label."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Int
from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.pictures.canvas import figure_svg, save_figure
from regard.pictures.colours import RULE
from regard.pictures.heat_map import RAMP
from regard.pictures.labelled_map import plain_text, readable_label
from regard.pictures.records import Records

MOST_NUMBERED = 20  # labels beside which a count can still be read


def draw_confusion(
    counts: Int[np.ndarray, "labels labels"],
    *,
    labels: Sequence[str],
    path: Path,
    title: str | None = None,
) -> None:
    """Draw counts by true label (rows) and predicted label (columns), or write them as data."""
    _check(counts, labels)
    save_figure(
        partial(_confusion, counts, labels, title), path, data=partial(_records, counts, labels)
    )


def confusion_svg(
    counts: Int[np.ndarray, "labels labels"], *, labels: Sequence[str], title: str | None = None
) -> str:
    """Return the same picture as SVG text, to stand in a page."""
    _check(counts, labels)
    return figure_svg(partial(_confusion, counts, labels, title))


def _check(counts: np.ndarray, labels: Sequence[str]) -> None:
    if counts.shape != (len(labels), len(labels)) or not labels:
        raise RegardError(f"counts of shape {counts.shape} do not fit {len(labels)} labels.")


def _records(counts: np.ndarray, labels: Sequence[str]) -> Records:
    rows = [
        (labels[row], labels[column], int(count)) for (row, column), count in np.ndenumerate(counts)
    ]
    return Records(("true", "predicted", "count"), rows)


def _confusion(counts: np.ndarray, labels: Sequence[str], title: str | None) -> Figure:
    """Draw the share of each row, so that rare labels can be seen too; the counts stand in it."""
    size = len(labels)
    cell = float(np.interp(size, [4, 30], [0.62, 0.24]))  # inches
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    figure = Figure(figsize=(size * cell, size * cell))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.pcolormesh(shares, cmap=RAMP, vmin=0, vmax=1, edgecolors=RULE, linewidth=0.6)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=4)
    names = [readable_label(label) for label in labels]
    places = np.arange(size) + 0.5
    axes.set_xticks(places, names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(places, names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    if size <= MOST_NUMBERED:
        for (row, column), count in np.ndenumerate(counts):
            # Black on what is light and white on what is dark, whatever the theme of the page.
            ink = "white" if shares[row, column] > 0.5 else "black"
            axes.text(
                column + 0.5, row + 0.5, f"{count}", ha="center", va="center", color=ink, fontsize=9
            )
    if title is not None:
        axes.set_title(plain_text(title), pad=10)
    return figure
