"""The build-up of a translation: one step of a decoder, and the source words it reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from regard.base.errors import SettingsError
from regard.pictures import canvas, labels
from regard.pictures.canvas import FAINT, INK, PALETTE, RULE

# Heights of the rows, in inches: source words, their states, the context, the decoder, the output.
SOURCE, STATES, CONTEXT, DECODER, OUTPUT = 0.0, 0.75, 2.25, 3.15, 3.95
BOX = 0.34  # inches, the height of a box
LETTER = 0.105  # inches of a letter


def draw_step(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    step: int,
    path: Path,
) -> None:
    """Draw one step (from 1) to a PNG, SVG or PDF file, or write its weights as CSV or JSON."""
    drawn = _checked(weights, source, target, step)
    rows = [(word, float(w)) for word, w in zip(source, weights[step - 1], strict=True)]
    data = partial(canvas.Records, ("source", "weight"), rows)
    canvas.save_figure(partial(_figure, drawn, step), path, data=data)


def step_svg(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    step: int,
) -> str:
    """Return the same picture as SVG text, for a page."""
    return canvas.figure_svg(partial(_figure, _checked(weights, source, target, step), step))


def _checked(
    weights: np.ndarray, source: Sequence[str], target: Sequence[str], step: int
) -> labels.LabelledMap:
    if not 1 <= step <= len(target):
        raise SettingsError(f"There is no step {step}: the output has steps 1 to {len(target)}.")
    return labels.labelled_map(weights, source=source, target=target)


def _figure(drawn: labels.LabelledMap, step: int) -> Figure:
    columns = _centres(drawn.source)
    outputs = _centres(drawn.target)
    width = max(columns[-1], outputs[-1]) + 1.0
    columns = [x + (width - 1.0 - columns[-1]) / 2 for x in columns]
    outputs = [x + (width - 1.0 - outputs[-1]) / 2 for x in outputs]
    figure = Figure(figsize=(width, OUTPUT + 0.7))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(-0.35, OUTPUT + 0.35)
    axes.set_axis_off()
    now = step - 1
    context = (outputs[now], CONTEXT)
    _encoder(axes, drawn.source, columns)
    _attention(axes, drawn.weights[now], columns, context)
    _decoder(axes, drawn.target, outputs, now)
    _box(axes, *context, _indexed("c", step), colour=PALETTE[1])
    _arrow(axes, (outputs[now], CONTEXT + BOX / 2), (outputs[now], DECODER - BOX / 2), PALETTE[1])
    axes.set_title(f"Attention at time step {step}", pad=8)
    return figure


def _centres(words: Sequence[str]) -> list[float]:
    """Return the middle of each word's column in inches; long words get more room."""
    widths = [max(0.85, LETTER * len(word) + 0.25) for word in words]
    ends = np.cumsum(widths)
    return [float(end - width / 2) for end, width in zip(ends, widths, strict=True)]


def _encoder(axes: Axes, words: Sequence[str], columns: Sequence[float]) -> None:
    for number, (word, x) in enumerate(zip(words, columns, strict=True), start=1):
        axes.text(x, SOURCE, labels.plain_text(word), ha="center", va="center", color=INK)
        _arrow(axes, (x, SOURCE + 0.14), (x, STATES - BOX / 2), FAINT)
        _box(axes, x, STATES, _indexed("h", number), colour=PALETTE[2])


def _attention(
    axes: Axes, weights: np.ndarray, columns: Sequence[float], context: tuple[float, float]
) -> None:
    """Draw a line from each state to the context, as thick as its weight, with the number."""
    for weight, x in zip(weights, columns, strict=True):
        share = float(weight)
        axes.plot(
            [x, context[0]],
            [STATES + BOX / 2 + 0.3, context[1] - BOX / 2],
            color=canvas.hexadecimal(canvas.colour_on_light(0.25 + 0.65 * share)),
            linewidth=0.6 + 7 * share,
            solid_capstyle="round",
            zorder=1,
        )
        bold = "bold" if share == weights.max() else "normal"
        axes.text(
            x, STATES + BOX / 2 + 0.15, f"{share:.2f}", ha="center", va="center",
            fontsize=8.5, fontweight=bold, color=INK if share > 0.05 else FAINT,
        )  # fmt: skip


def _decoder(axes: Axes, words: Sequence[str], outputs: Sequence[float], now: int) -> None:
    """Draw the states so far and the words that they wrote."""
    for place in range(now + 1):
        x, current = outputs[place], place == now
        colour = PALETTE[0] if current else RULE
        _box(axes, x, DECODER, _indexed("s", place + 1), colour=colour)
        _arrow(axes, (x, DECODER + BOX / 2), (x, OUTPUT - 0.16), FAINT)
        bold = "bold" if current else "normal"
        axes.text(
            x, OUTPUT, labels.plain_text(words[place]), ha="center", va="center",
            fontweight=bold, color=INK if current else FAINT,
        )  # fmt: skip
        if place:
            before = outputs[place - 1]
            _arrow(axes, (before + 0.24, DECODER), (x - 0.24, DECODER), FAINT)


def _indexed(letter: str, number: int) -> str:
    """Return a letter with a number below it, of characters that every font has."""
    below = str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
    return f"{letter}{below}"


def _box(axes: Axes, x: float, y: float, text: str, *, colour: str) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x - 0.21, y - BOX / 2), 0.42, BOX, boxstyle="round,pad=0,rounding_size=0.07",
            facecolor="none", edgecolor=colour, linewidth=1.4, zorder=2,
        )
    )  # fmt: skip
    axes.text(x, y, text, ha="center", va="center", fontsize=10, color=INK, zorder=3)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    style = "-|>,head_length=3,head_width=1.6"
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle=style, color=colour, linewidth=1.0, shrinkA=0,
                        shrinkB=0)
    )  # fmt: skip
