"""The attention heat map of a sentence pair: source words on top, target words on the left."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from regard.pictures.canvas import (
    FORMATS,
    figure_in_full,
    figure_svg,
    save_figure,
)
from regard.pictures.colours import FAINT, RULE, hexadecimal, ink_on_paper
from regard.pictures.labelled_map import LabelledMap, labelled_map, plain_text, readable_label
from regard.pictures.records import DATA_SUFFIXES, csv_text, json_text, write_text
from regard.pictures.scripts import reads_right_to_left
from regard.pictures.written import unknown_suffix

RAMP = ListedColormap([hexadecimal(ink_on_paper(step / 255)) for step in range(256)], "regard")


def draw_heat_map(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    path: Path,
    title: str | None = None,
) -> None:
    """Draw attention weights to a PNG, SVG or PDF file, by the suffix of its name."""
    drawn = labelled_map(weights, source=source, target=target)
    save_figure(partial(_heat_map, drawn, title), path)


def heat_map_svg(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    title: str | None = None,
) -> str:
    """Return the heat map as SVG text, to stand in a page."""
    drawn = labelled_map(weights, source=source, target=target)
    return figure_svg(partial(_heat_map, drawn, title))


def heat_map_figure(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    title: str | None = None,
) -> Figure:
    """Return the heat map as a matplotlib figure, for a notebook or to be drawn upon."""
    drawn = labelled_map(weights, source=source, target=target)
    return figure_in_full(partial(_heat_map, drawn, title))


def save_data(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    path: Path,
) -> None:
    """Write the numbers behind a heat map as CSV or JSON, by the suffix of the file's name."""
    data = labelled_map(weights, source=source, target=target)
    suffix = path.suffix.lower()
    if suffix not in DATA_SUFFIXES:
        raise unknown_suffix(path, DATA_SUFFIXES)
    rows = data.weights.tolist()  # one a target word
    if suffix == ".csv":
        named = [[word, *row] for word, row in zip(data.target, rows, strict=True)]
        write_text(path, csv_text([["", *data.source], *named]))
    else:
        write_text(path, json_text({"source": data.source, "target": data.target, "weights": rows}))


def write_map(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    path: Path,
    title: str | None = None,
) -> None:
    """Write a heat map in whatever form the file's suffix asks for: a picture or its data."""
    suffix = path.suffix.lower()
    if suffix in DATA_SUFFIXES:
        save_data(weights, source=source, target=target, path=path)
    elif suffix in FORMATS:
        draw_heat_map(weights, source=source, target=target, path=path, title=title)
    else:
        raise unknown_suffix(path, (*FORMATS, *DATA_SUFFIXES))


def _heat_map(drawn: LabelledMap, title: str | None) -> Figure:
    """Draw the map; cells keep their shape, so the figure grows with the words."""
    rows, columns = drawn.weights.shape
    crowd = max(rows, columns)
    cell = float(np.interp(crowd, [10, 40], [0.40, 0.23]))  # inches
    size = float(np.interp(crowd, [10, 40], [11.0, 8.0]))  # points
    width, height = columns * cell, rows * cell

    # The axes fill the figure; saving grows the page by what the labels need.
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    mesh = axes.pcolormesh(
        drawn.weights,
        cmap=RAMP,
        vmin=0.0,
        vmax=drawn.limit,
        edgecolors=RULE,
        linewidth=0.6,
        clip_on=False,  # the outermost lines are as thick as the inner ones
    )
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=4, labelsize=size)
    axes.xaxis.tick_top()
    mirrored = reads_right_to_left(drawn.source)  # the first word is then the rightmost
    if mirrored:
        axes.invert_xaxis()
    axes.set_xticks(
        np.arange(columns) + 0.5,
        [readable_label(word) for word in drawn.source],
        rotation=-45 if mirrored else 45,
        ha="right" if mirrored else "left",
        rotation_mode="anchor",
    )
    axes.set_yticks(np.arange(rows) + 0.5, [readable_label(word) for word in drawn.target])
    if title is not None:
        axes.set_title(plain_text(title), pad=10)
    _colour_bar(figure, axes, mesh, height=height, width=width, limit=drawn.limit)
    return figure


def _colour_bar(
    figure: Figure, axes: Axes, mesh: QuadMesh, *, height: float, width: float, limit: float
) -> None:
    """Put a small scale to the right of the map; sizes in inches."""
    bar_height = min(1.3, height)
    place = (1 + 0.22 / width, 1 - bar_height / height, 0.1 / width, bar_height / height)
    bar = figure.colorbar(mesh, cax=axes.inset_axes(place), ticks=[0, limit / 2, limit])
    bar.outline.set_visible(False)
    bar.ax.set_yticklabels([f"{value:.3g}" for value in (0, limit / 2, limit)])
    bar.ax.tick_params(length=0, labelsize=7.5, labelcolor=FAINT, pad=3)
