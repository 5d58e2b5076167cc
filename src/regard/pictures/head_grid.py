"""An overview of all heads of a layer or of all layers: a small heat map for each."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.pictures.canvas import (
    FAINT,
    RULE,
    NotebookFigure,
    Records,
    figure_in_full,
    figure_svg,
    save_figure,
)
from regard.pictures.heat_map import weight_colours
from regard.pictures.labels import plain_text, readable_label, reads_right_to_left

SMALL, LARGE = 1.6, 2.6  # inches of a panel, among many and among few
FEW_PANELS = 8
MOST_LABELLED = 24  # words that fit next to a panel
PANELS_PER_ROW = 4  # of a single layer


def draw_head_grid(
    weights: Float[np.ndarray, "layers heads target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    path: Path,
    first_layer: int = 0,
    title: str | None = None,
) -> None:
    """Draw every head to PNG, SVG or PDF, or write their weights to CSV or JSON.

    Layers are drawn below each other, counted from `first_layer`; the heads of a single layer are
    drawn in rows of four.
    """
    _check(weights, source, target)
    save_figure(
        partial(_grid, weights, source, target, first_layer, title),
        path,
        data=partial(head_records, weights, source, target, first_layer=first_layer),
    )


def head_grid_svg(
    weights: Float[np.ndarray, "layers heads target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    first_layer: int = 0,
    title: str | None = None,
) -> str:
    """Return the same picture as SVG text, for a page."""
    _check(weights, source, target)
    return figure_svg(partial(_grid, weights, source, target, first_layer, title))


def head_grid_figure(
    weights: Float[np.ndarray, "layers heads target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    first_layer: int = 0,
    title: str | None = None,
) -> NotebookFigure:
    """Return the same picture as a matplotlib figure, for a notebook or for further drawing."""
    _check(weights, source, target)
    return figure_in_full(partial(_grid, weights, source, target, first_layer, title))


def head_records(
    weights: Float[np.ndarray, "layers heads target source"],
    source: Sequence[str],
    target: Sequence[str],
    *,
    first_layer: int = 0,
) -> Records:
    """Return a row for each weight; words are given with their positions, from 0."""
    columns = ("layer", "head", "target_place", "target", "source_place", "source", "weight")
    rows = [
        (first_layer + layer, head, row, target[row], column, source[column], float(weight))
        for (layer, head, row, column), weight in np.ndenumerate(weights)
    ]
    return Records(columns, rows)


def _check(weights: np.ndarray, source: Sequence[str], target: Sequence[str]) -> None:
    if weights.shape[2:] != (len(target), len(source)) or not weights.size:
        raise RegardError(
            f"weights of shape {weights.shape} do not fit {len(target)} target words "
            f"and {len(source)} source words."
        )


def _grid(
    weights: np.ndarray,
    source: Sequence[str],
    target: Sequence[str],
    first_layer: int,
    title: str | None,
) -> Figure:
    layers, heads = weights.shape[:2]
    columns = min(PANELS_PER_ROW, heads) if layers == 1 else heads
    rows = -(-layers * heads // columns)
    panel = LARGE if layers * heads <= FEW_PANELS else SMALL
    figure = Figure(figsize=(panel * columns, panel * rows))
    places = {"hspace": 0.25, "wspace": 0.15}
    panels = figure.subplots(rows, columns, squeeze=False, gridspec_kw=places)
    for axes in panels.flat[layers * heads :]:
        axes.set_axis_off()
    mirrored = reads_right_to_left(source)
    for number, axes in enumerate(panels.flat[: layers * heads]):
        layer, head = divmod(number, heads)
        # Every panel has its own scale: it shows where a head attends, not how strongly.
        axes.pcolormesh(weights[layer, head], cmap=weight_colours(), vmin=0.0, rasterized=True)
        axes.invert_yaxis()
        if mirrored:
            axes.invert_xaxis()
        axes.spines[:].set_visible(True)
        axes.spines[:].set_color(RULE)
        axes.set_xticks([])
        axes.set_yticks([])
        name = f"layer {first_layer + layer}, head {head}"
        axes.set_title(name, fontsize=7 if panel == SMALL else 9, fontweight="normal", pad=3)
        if number % columns == 0:
            _label(axes.yaxis, axes, target, panel)
        if number // columns == rows - 1 or number + columns >= layers * heads:
            _label(axes.xaxis, axes, source, panel)
            axes.tick_params(axis="x", rotation=90)
    if title is not None:
        panels[0, 0].annotate(
            plain_text(title),
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 22),
            textcoords="offset points",
            fontsize=11,
            fontweight="bold",
        )
    return figure


def _label(axis: Axis, axes: Axes, words: Sequence[str], panel: float) -> None:
    """Write the words next to a panel, as large as fits."""
    if len(words) > MOST_LABELLED:
        return
    size = min(8.0, 0.85 * 72 * panel * 0.77 / len(words))
    axis.set_ticks(np.arange(len(words)) + 0.5, [readable_label(w, longest=16) for w in words])
    axes.tick_params(length=0, labelsize=size, labelcolor=FAINT, pad=2)
