"""Arcs between words: what one word attends to, or every word of a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc

from regard.base.errors import RegardError
from regard.pictures import labels
from regard.pictures.canvas import FAINT, INK, PALETTE, Records, figure_svg, save_figure
from regard.pictures.head_grid import head_records

ABOVE = 2.0  # letters of space above the highest arc
LEAST_SHOWN = 0.02  # a thinner arc could not be seen
LEAST_NUMBERED = 0.1


@dataclass(frozen=True)
class WordAttention:
    """The attention of one word: a sentence, the index of the word, and its weights."""

    words: Sequence[str]
    place: int
    weights: Float[np.ndarray, "words"]
    note: str = ""


def draw_arcs(sentences: Sequence[WordAttention], path: Path, *, title: str | None = None) -> None:
    """Draw sentences below each other to PNG, SVG or PDF, or write the weights as CSV or JSON."""
    checked = _checked(sentences)
    save_figure(partial(_arcs, checked, title), path, data=partial(_records, checked))


def arcs_svg(sentences: Sequence[WordAttention], *, title: str | None = None) -> str:
    """Return the same picture as SVG text, for a page."""
    return figure_svg(partial(_arcs, _checked(sentences), title))


def _checked(sentences: Sequence[WordAttention]) -> Sequence[WordAttention]:
    if not sentences:
        raise RegardError("there are no sentences to draw.")
    for sentence in sentences:
        if len(sentence.words) != len(sentence.weights):
            raise RegardError(
                f"{len(sentence.weights)} weights do not fit {len(sentence.words)} words: "
                "each word needs one."
            )
        if not 0 <= sentence.place < len(sentence.words):
            raise RegardError(
                f"place {sentence.place} is outside the sentence of {len(sentence.words)} words."
            )
    return sentences


def _records(sentences: Sequence[WordAttention]) -> Records:
    columns = ("sentence", "note", "from_place", "from", "to_place", "to", "weight")
    rows = [
        (number, each.note, each.place, each.words[each.place], place, word, float(weight))
        for number, each in enumerate(sentences)
        for place, (word, weight) in enumerate(zip(each.words, each.weights, strict=True))
    ]
    return Records(columns, rows)


def _arcs(sentences: Sequence[WordAttention], title: str | None) -> Figure:
    """Draw a panel for each sentence, all at the same scale."""
    letters = max(labels.word_centres(sentence.words)[1] for sentence in sentences)
    # The arcs are flattened to a quarter of their width.
    heights = [_reach(sentence) / 4 + ABOVE + _below(sentence) for sentence in sentences]
    figure = Figure(
        figsize=(
            max(4.0, labels.INCHES_A_LETTER * letters),
            labels.INCHES_A_LETTER * sum(heights) + 0.3,
        )
    )
    panels = figure.subplots(len(sentences), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, sentence in zip(panels, sentences, strict=True):
        _draw_one(axes, sentence)
        axes.set_xlim(-labels.WORD_GAP, letters)
        if labels.reads_right_to_left(sentence.words):
            axes.invert_xaxis()
        axes.set_ylim(-_below(sentence), _reach(sentence) / 4 + ABOVE)
        axes.axis("off")
    if title is not None:
        panels[0].set_title(labels.plain_text(title), pad=6)
    return figure


def _draw_one(axes: Axes, sentence: WordAttention) -> None:
    centres, _ = labels.word_centres(sentence.words)
    start = centres[sentence.place]
    strongest = int(np.argmax(sentence.weights))
    for place, (word, weight) in enumerate(zip(sentence.words, sentence.weights, strict=True)):
        is_query = place == sentence.place
        axes.text(
            centres[place],
            0,
            labels.readable_label(word),
            ha="center",
            va="top",
            color=PALETTE[1] if is_query else INK,
            fontweight="bold" if is_query or place == strongest else "normal",
        )
        width = abs(centres[place] - start)
        if weight >= LEAST_SHOWN and not is_query:
            axes.add_patch(
                Arc(
                    ((centres[place] + start) / 2, 0.5),
                    width,
                    width / 2,
                    theta1=0,
                    theta2=180,
                    color=PALETTE[0],
                    linewidth=0.6 + 4.4 * float(weight),
                    alpha=0.35 + 0.65 * float(weight),
                    capstyle="round",
                )
            )
        if weight >= LEAST_NUMBERED and not is_query:
            axes.text(
                centres[place],
                -1.9,
                f"{weight:.2f}",
                ha="center",
                va="top",
                fontsize=8,
                color=FAINT,
            )
    if sentence.note:
        side = "right" if labels.reads_right_to_left(sentence.words) else "left"
        axes.text(
            0, -3.9, labels.plain_text(sentence.note), ha=side, va="top", fontsize=9, color=FAINT
        )


def _below(sentence: WordAttention) -> float:
    """Return the height of the text below the line, in letters."""
    return 6.6 if sentence.note else 3.9


def _reach(sentence: WordAttention) -> float:
    """Return the width of the widest arc, in letters."""
    centres, _ = labels.word_centres(sentence.words)
    shown = [
        abs(centre - centres[sentence.place])
        for centre, weight in zip(centres, sentence.weights, strict=True)
        if weight >= LEAST_SHOWN
    ]
    return max([8.0, *shown])


LEAST_DRAWN = 0.1  # weaker arcs would hide the others
TEXT_HEIGHT = 2.2  # letters


def draw_sentence_arcs(
    weights: Float[np.ndarray, "words words"],
    *,
    words: Sequence[str],
    path: Path,
    title: str | None = None,
) -> None:
    """Draw the arcs of all words to PNG, SVG or PDF, or write all weights as CSV or JSON."""
    drawn = labels.labelled_map(weights, source=words, target=words)
    save_figure(partial(_sentence, drawn, title), path, data=partial(_sentence_records, drawn))


def sentence_arcs_svg(
    weights: Float[np.ndarray, "words words"], *, words: Sequence[str], title: str | None = None
) -> str:
    """Return the same picture as SVG text, for a page."""
    drawn = labels.labelled_map(weights, source=words, target=words)
    return figure_svg(partial(_sentence, drawn, title))


def _sentence_records(drawn: labels.LabelledMap) -> Records:
    return head_records(drawn.weights[None, None], drawn.source, drawn.target)


def _sentence(drawn: labels.LabelledMap, title: str | None) -> Figure:
    centres, letters = labels.word_centres(drawn.source)
    shown = [
        (row, column, float(weight))
        for (row, column), weight in np.ndenumerate(drawn.weights)
        if weight >= LEAST_DRAWN and row != column
    ]
    above, below = (
        max([2.0, *(_height(centres, row, column) for row, column, _ in some)])
        for some in (
            [one for one in shown if one[1] < one[0]],
            [one for one in shown if one[1] > one[0]],
        )
    )
    height = above + below + TEXT_HEIGHT
    figure = Figure(
        figsize=(max(4.0, labels.INCHES_A_LETTER * letters), labels.INCHES_A_LETTER * height + 0.3)
    )
    axes = figure.subplots()
    for row, column, weight in shown:
        _arc(axes, centres, row, column, weight)
    for place, word in enumerate(drawn.source):
        axes.text(
            centres[place], 0, labels.readable_label(word), ha="center", va="center", color=INK
        )
    axes.set_xlim(-labels.WORD_GAP, letters)
    axes.set_ylim(-below - TEXT_HEIGHT / 2, above + TEXT_HEIGHT / 2)
    axes.axis("off")
    if labels.reads_right_to_left(drawn.source):
        axes.invert_xaxis()
    note = f"over the words: to an earlier one; under them: to a later one; from {LEAST_DRAWN} on"
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
        axes.set_title(labels.plain_text(title), pad=6)
    return figure


def _height(centres: Sequence[float], row: int, column: int) -> float:
    """Return the height of an arc; arcs are flattened."""
    return abs(centres[row] - centres[column]) / 4 + 0.5


def _arc(axes: Axes, centres: Sequence[float], row: int, column: int, weight: float) -> None:
    """Draw an arc in the colour of the attending word, as thick as its weight."""
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
