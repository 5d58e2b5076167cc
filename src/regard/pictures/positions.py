"""Pictures of position encodings: the vector of each position, or scores against distance."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regard.base.errors import RegardError
from regard.pictures.canvas import FAINT, PALETTE, Records, figure_svg, save_figure
from regard.pictures.labels import plain_text, readable_label


@cache
def signed_colours() -> LinearSegmentedColormap:
    """Return a colour map for signed values: orange below 0, white at 0, blue above."""
    return LinearSegmentedColormap.from_list("both ways", ["#a8400f", "#ffffff", "#0b4a9e"])


def draw_position_vectors(
    vectors: Float[np.ndarray, "places width"],
    *,
    places: Sequence[int],
    path: Path,
    what: str = "position",
    title: str | None = None,
) -> None:
    """Draw the vectors as rows, next to the cosine similarity of every two; or write them as data.

    `what` says what `places` are: positions or distances.
    """
    _check(vectors, places)
    draw = partial(_vectors, vectors, places, what, title)
    save_figure(draw, path, data=partial(_vector_records, vectors, places, what))


def position_vectors_svg(
    vectors: Float[np.ndarray, "places width"],
    *,
    places: Sequence[int],
    what: str = "position",
    title: str | None = None,
) -> str:
    """Return the same picture as SVG text, for a page."""
    _check(vectors, places)
    return figure_svg(partial(_vectors, vectors, places, what, title))


def draw_position_curves(
    curves: Mapping[str, Sequence[float]],
    *,
    distances: Sequence[int],
    path: Path,
    label: str,
    title: str | None = None,
) -> None:
    """Draw named curves against the distance of query and key, or write them as data."""
    draw = partial(_curves, curves, distances, label, title)
    save_figure(draw, path, data=partial(_curve_records, curves, distances))


def position_curves_svg(
    curves: Mapping[str, Sequence[float]],
    *,
    distances: Sequence[int],
    label: str,
    title: str | None = None,
) -> str:
    """Return the same picture as SVG text, for a page."""
    return figure_svg(partial(_curves, curves, distances, label, title))


def _check(vectors: np.ndarray, places: Sequence[int]) -> None:
    if not vectors.size or len(vectors) != len(places):
        raise RegardError(f"{len(vectors)} vectors do not fit {len(places)} places.")


def _vectors(vectors: np.ndarray, places: Sequence[int], what: str, title: str | None) -> Figure:
    figure = Figure(figsize=(9.4, 3.9))
    left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
    limit = float(np.abs(vectors).max()) or 1.0
    ends = (places[0] - 0.5, places[-1] + 0.5)
    _image(left, vectors, limit, (0.0, float(vectors.shape[1])), ends)
    left.set_xlabel("dimension")
    left.set_ylabel(what)
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    unit = vectors / lengths
    _image(right, unit @ unit.T, 1.0, ends, ends)
    right.set_aspect("equal")
    right.set_xlabel(what)
    right.set_ylabel(what)
    for axes, name in ((left, "the vectors"), (right, "how alike: cosine of every two")):
        axes.set_title(name, fontsize=9, fontweight="normal", color=FAINT, pad=5)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.tick_params(length=0, pad=4)
        bar = figure.colorbar(axes.images[0], ax=axes, fraction=0.035, pad=0.03)
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelsize=7.5, labelcolor=FAINT)
    figure.subplots_adjust(wspace=0.4)
    _title(left, title)
    return figure


def _image(
    axes: Axes,
    values: np.ndarray,
    limit: float,
    across: tuple[float, float],
    down: tuple[float, float],
) -> None:
    """Show numbers as colours, the first row at the top."""
    axes.imshow(
        values,
        cmap=signed_colours(),
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="nearest",
        extent=(*across, down[1], down[0]),
    )
    axes.spines[:].set_visible(False)


def _curves(
    curves: Mapping[str, Sequence[float]],
    distances: Sequence[int],
    label: str,
    title: str | None,
) -> Figure:
    figure = Figure(figsize=(6.4, 3.6))
    axes = figure.subplots()
    for number, (name, values) in enumerate(curves.items()):
        axes.plot(
            distances,
            values,
            color=PALETTE[number % len(PALETTE)],
            linewidth=2,
            linestyle=("-", "--", ":")[number // len(PALETTE) % 3],
            label=readable_label(name),
        )
    axes.set_xlabel("distance of query and key")
    axes.set_ylabel(label)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0, pad=5)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), handlelength=1.6)
    _title(axes, title)
    return figure


def _title(axes: Axes, title: str | None) -> None:
    if title is not None:
        axes.annotate(
            plain_text(title),
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 24),
            textcoords="offset points",
            fontsize=11,
            fontweight="bold",
        )


def _vector_records(vectors: np.ndarray, places: Sequence[int], what: str) -> Records:
    columns = (what, *(f"dimension {number}" for number in range(vectors.shape[1])))
    return Records(
        columns, [(place, *row) for place, row in zip(places, vectors.tolist(), strict=True)]
    )


def _curve_records(curves: Mapping[str, Sequence[float]], distances: Sequence[int]) -> Records:
    rows = [
        (name, distance, float(value))
        for name, values in curves.items()
        for distance, value in zip(distances, values, strict=True)
    ]
    return Records(("curve", "distance", "value"), rows)
