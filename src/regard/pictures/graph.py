"""Pictures of a graph: a node's neighbourhood with the attention on its edges, and embeddings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from regard.base.errors import SettingsError
from regard.pictures.canvas import FAINT, INK, PALETTE, Records, figure_svg, save_figure
from regard.pictures.labels import plain_text, readable_label

MOST_NEIGHBOURS = 60
THICKEST = 12.0  # points, for the edge that carries most of the attention
UNKNOWN_COLOUR = "#b9c0c7"


@dataclass(frozen=True)
class Neighbour:
    """A neighbour to draw: its name, its class (-1: unknown) and its attention weight."""

    name: str
    label: int
    weight: float


def draw_neighbourhood(
    centre: Neighbour,
    neighbours: Sequence[Neighbour],
    *,
    classes: Sequence[str],
    path: Path,
    title: str | None = None,
) -> None:
    """Draw a node among its neighbours, each edge as thick as the attention that it carries.

    Thickness is relative to the thickest edge, whose weight is given below the picture. The weight
    of the centre is its attention to itself, drawn as a ring. Of many neighbours only the most
    attended are drawn, and the line below gives the sum of the rest.
    """
    save_figure(
        partial(_neighbourhood, centre, neighbours, classes, title),
        path,
        data=partial(_neighbour_records, centre, neighbours, classes),
    )


def draw_embeddings(
    points: Float[np.ndarray, "nodes hidden"],
    *,
    labels: Int[np.ndarray, "nodes"],
    classes: Sequence[str],
    path: Path,
    method: Literal["pca", "t-sne"] = "pca",
    title: str | None = None,
) -> None:
    """Draw nodes as points, close together if their features are similar, coloured by class."""
    placed = project_to_plane(points, method=method)
    save_figure(
        partial(_embeddings, placed, labels, classes, method, title),
        path,
        data=partial(_embedding_records, placed, labels, classes),
    )


def embeddings_svg(
    points: Float[np.ndarray, "nodes hidden"],
    *,
    labels: Int[np.ndarray, "nodes"],
    classes: Sequence[str],
    method: Literal["pca", "t-sne"] = "pca",
    title: str | None = None,
) -> str:
    """Return the same picture as SVG text, for a page."""
    placed = project_to_plane(points, method=method)
    return figure_svg(partial(_embeddings, placed, labels, classes, method, title))


def project_to_plane(
    points: Float[np.ndarray, "nodes hidden"], *, method: Literal["pca", "t-sne"]
) -> Float[np.ndarray, "nodes 2"]:
    """Return the points projected to two dimensions."""
    try:
        from sklearn.decomposition import PCA  # type: ignore[import-untyped]
        from sklearn.manifold import TSNE  # type: ignore[import-untyped]
    except ImportError as error:
        raise SettingsError(
            "Pictures of embeddings need scikit-learn: pip install scikit-learn"
        ) from error
    if method == "pca":
        found = PCA(n_components=2, random_state=0).fit_transform(points)
    else:
        perplexity = min(30.0, max(1.0, (len(points) - 1) / 3))
        found = TSNE(
            n_components=2, init="pca", perplexity=perplexity, random_state=0
        ).fit_transform(points)
    return np.asarray(found)


def _neighbour_records(
    centre: Neighbour, neighbours: Sequence[Neighbour], classes: Sequence[str]
) -> Records:
    rows = [
        (each.name, classes[each.label] if each.label >= 0 else None, each.weight)
        for each in (centre, *neighbours)
    ]
    return Records(("node", "class", "weight"), rows)


def _embedding_records(placed: np.ndarray, labels: np.ndarray, classes: Sequence[str]) -> Records:
    rows = [
        (node, classes[label] if label >= 0 else None, float(x), float(y))
        for node, (label, (x, y)) in enumerate(zip(labels.tolist(), placed, strict=True))
    ]
    return Records(("node", "class", "x", "y"), rows)


def _neighbourhood(
    centre: Neighbour, neighbours: Sequence[Neighbour], classes: Sequence[str], title: str | None
) -> Figure:
    ranked = sorted(neighbours, key=lambda each: -each.weight)
    shown, rest = ranked[:MOST_NEIGHBOURS], ranked[MOST_NEIGHBOURS:]
    figure = Figure(figsize=(6.4, 6.4))
    axes = _empty(figure)
    size = min(0.13, 2.2 / max(8, len(shown)))
    thickest = min(THICKEST, 120 / max(1, len(shown)))  # many edges must not overlap
    most = max([centre.weight, *(each.weight for each in shown)]) or 1.0
    for number, each in enumerate(shown):
        angle = math.pi / 2 - 2 * math.pi * number / len(shown)
        x, y = math.cos(angle), math.sin(angle)
        axes.plot(
            [0, x],
            [0, y],
            color=FAINT,
            linewidth=max(0.2, thickest * each.weight / most),
            solid_capstyle="butt",
            zorder=1,
            gid=f"edge-{each.name}",
        )
        _node(axes, each, x, y, size=size)
        _caption(axes, each, x, y, angle=angle, size=size)
    ring = thickest * centre.weight / most
    axes.add_patch(Circle((0, 0), 0.16, fill=False, edgecolor=FAINT, linewidth=ring))
    _node(axes, centre, 0.0, 0.0, size=0.12)
    axes.text(0, 0, plain_text(readable_label(centre.name)), ha="center", va="center", fontsize=9)
    note = f"attention to itself: {centre.weight:.2g}; thickest: {most:.2g}"
    if rest:
        share = sum(each.weight for each in rest)
        note += f"; {len(rest)} more neighbours share {share:.2g}"
    axes.text(0, -1.62, note, ha="center", va="top", color=FAINT, fontsize=9)
    present = {each.label for each in (centre, *shown)}
    _legend(axes, classes, present)
    axes.set_title(title or f"What node {plain_text(centre.name)} attends to")
    return figure


def _embeddings(
    placed: np.ndarray, labels: np.ndarray, classes: Sequence[str], method: str, title: str | None
) -> Figure:
    figure = Figure(figsize=(6.4, 5.6))
    axes = _empty(figure, equal=False)
    colours = [_colour(int(label)) for label in labels]
    axes.scatter(placed[:, 0], placed[:, 1], c=colours, s=max(2.0, min(30.0, 3e4 / len(placed))))
    _legend(axes, classes, {int(label) for label in labels})
    axes.set_title(title or f"Nodes by their features in the last hidden layer ({method})")
    return figure


def _empty(figure: Figure, *, equal: bool = True) -> Axes:
    axes = figure.subplots()
    axes.set_axis_off()
    if equal:
        axes.set_aspect("equal")
        axes.set_xlim(-1.6, 1.6)
        axes.set_ylim(-1.6, 1.6)
    return axes


def _node(axes: Axes, node: Neighbour, x: float, y: float, *, size: float) -> None:
    axes.add_patch(Circle((x, y), size, facecolor=_colour(node.label), edgecolor="white", zorder=2))


def _caption(axes: Axes, node: Neighbour, x: float, y: float, *, angle: float, size: float) -> None:
    """Write name and weight outside the circle, along the edge, so that many fit."""
    away = 1 + size + 0.04
    degrees = math.degrees(angle) % 360
    left = 90 < degrees < 270
    label = f"{plain_text(readable_label(node.name, longest=16))} · {node.weight:.2g}"
    axes.text(
        x * away,
        y * away,
        label,
        ha="right" if left else "left",
        va="center",
        rotation=degrees - 180 if left else degrees,
        rotation_mode="anchor",
        fontsize=8,
        color=INK,
    )


def _colour(label: int) -> str:
    return UNKNOWN_COLOUR if label < 0 else PALETTE[label % len(PALETTE)]


def _legend(axes: Axes, classes: Sequence[str], present: set[int]) -> None:
    handles = [
        Line2D([], [], marker="o", linestyle="", color=_colour(number), label=plain_text(name))
        for number, name in enumerate(classes)
        if number in present
    ]
    if -1 in present:
        handles.append(
            Line2D([], [], marker="o", linestyle="", color=_colour(-1), label="not known")
        )
    axes.legend(
        handles=handles, title="class", loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9
    )
