"""Self-attention of a whole sentence: arcs from every word to the words that it looks at.

An arc over the sentence leads back to an earlier word, one under it on to a later word.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc

from regard.pictures.canvas import figure_svg, save_figure
from regard.pictures.colours import FAINT, INK, PALETTE
from regard.pictures.head_grid import head_records
from regard.pictures.labelled_map import LabelledMap, labelled_map, plain_text, readable_label
from regard.pictures.records import Records
from regard.pictures.scripts import reads_right_to_left
from regard.pictures.word_line import INCHES_A_LETTER, WORD_GAP, word_centres

LEAST_SHOWN = 0.1  # weaker arcs would hide the others
TEXT_HEIGHT = 2.2  # letters


def draw_sentence_arcs(
    weights: Float[np.ndarray, "words words"],
    *,
    words: Sequence[str],
    path: Path,
    title: str | None = None,
) -> None:
    """Draw the arcs of all words to PNG, SVG or PDF, or write all weights as CSV or JSON."""
    drawn = labelled_map(weights, source=words, target=words)
    save_figure(partial(_sentence, drawn, title), path, data=partial(_records, drawn))


def sentence_arcs_svg(
    weights: Float[np.ndarray, "words words"], *, words: Sequence[str], title: str | None = None
) -> str:
    """Return the same picture as SVG text, to stand in a page."""
    drawn = labelled_map(weights, source=words, target=words)
    return figure_svg(partial(_sentence, drawn, title))


def _records(drawn: LabelledMap) -> Records:
    return head_records(drawn.weights[None, None], drawn.source, drawn.target)


def _sentence(drawn: LabelledMap, title: str | None) -> Figure:
    centres, letters = word_centres(drawn.source)
    shown = [
        (row, column, float(weight))
        for (row, column), weight in np.ndenumerate(drawn.weights)
        if weight >= LEAST_SHOWN and row != column
    ]
    above, below = (
        max([2.0, *(_height(centres, row, column) for row, column, _ in some)])
        for some in (
            [one for one in shown if one[1] < one[0]],
            [one for one in shown if one[1] > one[0]],
        )
    )
    height = above + below + TEXT_HEIGHT
    figure = Figure(figsize=(max(4.0, INCHES_A_LETTER * letters), INCHES_A_LETTER * height + 0.3))
    axes = figure.subplots()
    for row, column, weight in shown:
        _arc(axes, centres, row, column, weight)
    for place, word in enumerate(drawn.source):
        axes.text(centres[place], 0, readable_label(word), ha="center", va="center", color=INK)
    axes.set_xlim(-WORD_GAP, letters)
    axes.set_ylim(-below - TEXT_HEIGHT / 2, above + TEXT_HEIGHT / 2)
    axes.axis("off")
    if reads_right_to_left(drawn.source):
        axes.invert_xaxis()
    note = f"over the words: to an earlier one; under them: to a later one; from {LEAST_SHOWN} on"
    axes.annotate(
        note,
        (0, 0),
        xycoords="axes fraction",
        xytext=(0, -14),
        textcoords="offset points",
        fontsize=8,
        color=FAINT,
    )
    if title is not None:
        axes.set_title(plain_text(title), pad=6)
    return figure


def _height(centres: Sequence[float], row: int, column: int) -> float:
    """Return how far an arc leaves the line; arcs are flattened."""
    return abs(centres[row] - centres[column]) / 4 + 0.5


def _arc(axes: Axes, centres: Sequence[float], row: int, column: int, weight: float) -> None:
    """Draw an arc in the colour of the word that looks, as thick as the weight."""
    back = column < row
    axes.add_patch(
        Arc(
            ((centres[row] + centres[column]) / 2, TEXT_HEIGHT / 2 if back else -TEXT_HEIGHT / 2),
            abs(centres[row] - centres[column]),
            2 * (_height(centres, row, column) - 0.5),
            theta1=0 if back else 180,
            theta2=180 if back else 360,
            color=PALETTE[row % len(PALETTE)],
            linewidth=0.5 + 4.0 * weight,
            alpha=0.35 + 0.6 * weight,
            capstyle="round",
        )
    )
