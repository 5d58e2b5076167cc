"""All heads of all layers at a glance: a small map for each, layers below each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.pictures.canvas import figure_svg, save_figure
from regard.pictures.colours import FAINT, RULE
from regard.pictures.heat_map import RAMP
from regard.pictures.labelled_map import plain_text, readable_label

PANEL = 1.6  # inches
MOST_LABELLED = 24  # words that can be read beside a panel


def draw_head_grid(
    weights: Float[np.ndarray, "layers heads target source"],
    *,
    words: Sequence[str],
    path: Path,
    title: str | None = None,
) -> None:
    """Draw the weights of every layer and head to a PNG, SVG or PDF file."""
    _check(weights, words)
    save_figure(partial(_grid, weights, words, title), path)


def head_grid_svg(
    weights: Float[np.ndarray, "layers heads target source"],
    *,
    words: Sequence[str],
    title: str | None = None,
) -> str:
    """Return the same picture as SVG text, to stand in a page."""
    _check(weights, words)
    return figure_svg(partial(_grid, weights, words, title))


def _check(weights: np.ndarray, words: Sequence[str]) -> None:
    if weights.shape[2:] != (len(words), len(words)) or not weights.size:
        raise RegardError(
            f"weights of shape {weights.shape} do not fit {len(words)} words on both sides."
        )


def _grid(weights: np.ndarray, words: Sequence[str], title: str | None) -> Figure:
    layers, heads = weights.shape[:2]
    labels = [readable_label(word) for word in words] if len(words) <= MOST_LABELLED else []
    figure = Figure(figsize=(PANEL * heads, PANEL * layers))
    panels = figure.subplots(layers, heads, squeeze=False, gridspec_kw={"hspace": 0.25})
    for (layer, head), axes in np.ndenumerate(panels):
        # Every panel has its own scale: what counts is where a head looks, not how firmly.
        axes.pcolormesh(weights[layer, head], cmap=RAMP, vmin=0.0, rasterized=True)
        axes.set_aspect("equal")
        axes.invert_yaxis()
        axes.spines[:].set_visible(True)
        axes.spines[:].set_color(RULE)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(f"layer {layer}, head {head}", fontsize=7, fontweight="normal", pad=3)
        if head == 0 and labels:
            axes.set_yticks(np.arange(len(labels)) + 0.5, labels)
            axes.tick_params(length=0, labelsize=5, labelcolor=FAINT, pad=2)
    if title is not None:
        figure.suptitle(plain_text(title), fontsize=10, x=0.02, ha="left")
    return figure
