"""Heat maps: the attention of a sentence pair, and the confusion matrix of a classifier."""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.pictures import canvas
from regard.pictures import labels as text


@cache
def weight_colours() -> ListedColormap:
    """Return the colour map of attention weights, from white to deep blue."""
    shares = (step / 255 for step in range(256))
    return ListedColormap(
        [canvas.hexadecimal(canvas.colour_on_light(share)) for share in shares], "regard"
    )


def draw_heat_map(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    path: Path,
    title: str | None = None,
) -> None:
    """Draw attention weights to a PNG, SVG or PDF file, by the suffix of its name."""
    drawn = text.labelled_map(weights, source=source, target=target)
    canvas.save_figure(partial(_heat_map, drawn, title), path)


def heat_map_svg(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    title: str | None = None,
) -> str:
    """Return the heat map as SVG text, for a page."""
    drawn = text.labelled_map(weights, source=source, target=target)
    return canvas.figure_svg(partial(_heat_map, drawn, title))


def heat_map_figure(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    title: str | None = None,
) -> canvas.NotebookFigure:
    """Return the heat map as a matplotlib figure, for a notebook or for further drawing."""
    drawn = text.labelled_map(weights, source=source, target=target)
    return canvas.figure_in_full(partial(_heat_map, drawn, title))


def save_data(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    path: Path,
) -> None:
    """Write the numbers behind a heat map as CSV or JSON, by the suffix of the file's name."""
    data = text.labelled_map(weights, source=source, target=target)
    suffix = path.suffix.lower()
    if suffix not in canvas.DATA_SUFFIXES:
        raise canvas.unknown_suffix(path, canvas.DATA_SUFFIXES)
    rows = data.weights.tolist()  # one for each target word
    if suffix == ".csv":
        named = [[word, *row] for word, row in zip(data.target, rows, strict=True)]
        canvas.write_text(path, canvas.csv_text([["", *data.source], *named]))
    else:
        canvas.write_text(
            path, canvas.json_text({"source": data.source, "target": data.target, "weights": rows})
        )


def write_map(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    path: Path,
    title: str | None = None,
) -> None:
    """Write a heat map as a picture or as data, by the suffix of the file's name."""
    suffix = path.suffix.lower()
    if suffix in canvas.DATA_SUFFIXES:
        save_data(weights, source=source, target=target, path=path)
    elif suffix in canvas.FORMATS:
        draw_heat_map(weights, source=source, target=target, path=path, title=title)
    else:
        raise canvas.unknown_suffix(path, (*canvas.FORMATS, *canvas.DATA_SUFFIXES))


def _heat_map(drawn: text.LabelledMap, title: str | None) -> Figure:
    """Draw the map; cells are square, so the figure grows with the number of words."""
    rows, columns = drawn.weights.shape
    longer = max(rows, columns)
    cell = float(np.interp(longer, [10, 40], [0.40, 0.23]))  # inches
    size = float(np.interp(longer, [10, 40], [11.0, 8.0]))  # points
    width, height = columns * cell, rows * cell

    # The axes fill the figure; saving enlarges the page to fit the labels.
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    mesh = axes.pcolormesh(
        drawn.weights,
        cmap=weight_colours(),
        vmin=0.0,
        vmax=drawn.limit,
        edgecolors=canvas.RULE,
        linewidth=0.6,
        clip_on=False,  # the outermost lines are as thick as the inner ones
    )
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=4, labelsize=size)
    axes.xaxis.tick_top()
    mirrored = text.reads_right_to_left(drawn.source)  # the first word is then the rightmost
    if mirrored:
        axes.invert_xaxis()
    axes.set_xticks(
        np.arange(columns) + 0.5,
        [text.readable_label(word) for word in drawn.source],
        rotation=-45 if mirrored else 45,
        ha="right" if mirrored else "left",
        rotation_mode="anchor",
    )
    axes.set_yticks(np.arange(rows) + 0.5, [text.readable_label(word) for word in drawn.target])
    if title is not None:
        axes.set_title(text.plain_text(title), pad=10)
    _colour_bar(figure, axes, mesh, height=height, width=width, limit=drawn.limit)
    return figure


def _colour_bar(
    figure: Figure, axes: Axes, mesh: QuadMesh, *, height: float, width: float, limit: float
) -> None:
    """Draw a small scale to the right of the map; sizes are in inches."""
    bar_height = min(1.3, height)
    place = (1 + 0.22 / width, 1 - bar_height / height, 0.1 / width, bar_height / height)
    bar = figure.colorbar(mesh, cax=axes.inset_axes(place), ticks=[0, limit / 2, limit])
    bar.outline.set_visible(False)
    bar.ax.set_yticklabels([f"{value:.3g}" for value in (0, limit / 2, limit)])
    bar.ax.tick_params(length=0, labelsize=7.5, labelcolor=canvas.FAINT, pad=3)


MOST_NUMBERED = 20  # most labels for which counts are drawn in the cells


def draw_confusion(
    counts: Int[np.ndarray, "labels labels"],
    *,
    labels: Sequence[str],
    path: Path,
    title: str | None = None,
) -> None:
    """Draw counts by true label (rows) and predicted label (columns), or write them as data."""
    _check(counts, labels)
    canvas.save_figure(
        partial(_confusion, counts, labels, title), path, data=partial(_records, counts, labels)
    )


def confusion_svg(
    counts: Int[np.ndarray, "labels labels"], *, labels: Sequence[str], title: str | None = None
) -> str:
    """Return the same picture as SVG text, for a page."""
    _check(counts, labels)
    return canvas.figure_svg(partial(_confusion, counts, labels, title))


def _check(counts: np.ndarray, labels: Sequence[str]) -> None:
    if counts.shape != (len(labels), len(labels)) or not labels:
        raise RegardError(f"counts of shape {counts.shape} do not fit {len(labels)} labels.")


def _records(counts: np.ndarray, labels: Sequence[str]) -> canvas.Records:
    rows = [
        (labels[row], labels[column], int(count)) for (row, column), count in np.ndenumerate(counts)
    ]
    return canvas.Records(("true", "predicted", "count"), rows)


def _confusion(counts: np.ndarray, labels: Sequence[str], title: str | None) -> Figure:
    """Colour each cell by its share of the row, so that rare labels are visible too."""
    size = len(labels)
    cell = float(np.interp(size, [4, 30], [0.62, 0.24]))  # inches
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    figure = Figure(figsize=(size * cell, size * cell))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.pcolormesh(
        shares, cmap=weight_colours(), vmin=0, vmax=1, edgecolors=canvas.RULE, linewidth=0.6
    )
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=4)
    names = [text.readable_label(label) for label in labels]
    places = np.arange(size) + 0.5
    axes.set_xticks(places, names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(places, names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    if size <= MOST_NUMBERED:
        for (row, column), count in np.ndenumerate(counts):
            # Black on light cells and white on dark ones, in any theme of the page.
            ink = "white" if shares[row, column] > 0.5 else "black"
            axes.text(
                column + 0.5, row + 0.5, f"{count}", ha="center", va="center", color=ink, fontsize=9
            )
    if title is not None:
        axes.set_title(text.plain_text(title), pad=10)
    return figure
