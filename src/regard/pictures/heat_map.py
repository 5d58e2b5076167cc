"""Heat maps: the attention of a sentence pair, and the confusion matrix of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.pictures.canvas import (
    DATA_SUFFIXES,
    FAINT,
    FORMATS,
    RULE,
    Records,
    csv_text,
    figure_in_full,
    figure_svg,
    hexadecimal,
    ink_on_paper,
    json_text,
    save_figure,
    unknown_suffix,
    write_text,
)
from regard.pictures.labels import (
    LabelledMap,
    labelled_map,
    plain_text,
    readable_label,
    reads_right_to_left,
)

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
