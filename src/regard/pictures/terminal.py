"""The attention heat map as text for a terminal: target words down, source words across."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.style import Style
from rich.text import Text

from regard.pictures.canvas import light_in_the_dark
from regard.pictures.labels import LabelledMap, labelled_map, readable_label

# A cell holds its shade twice, as a character and as a colour; where the character's colour is
# that of its ground only the colour is seen, and where there is no colour the character remains.
SHADES = " ░▒▓█"
NARROW_CELL = 2
LONGEST_TARGET = 16
LONGEST_SOURCE = 14
NARROWEST = 20

FAINT = Style(dim=True)


@dataclass(frozen=True)
class Panel:
    """The columns of a map that stand side by side, from `first`, each with its width."""

    first: int
    widths: tuple[int, ...]
    header: tuple[Text, ...]


def terminal_heat_map(
    weights: Float[np.ndarray, "target source"],
    *,
    source: Sequence[str],
    target: Sequence[str],
    console_width: int,
) -> Text:
    """Return a heat map no wider than the console; what does not fit goes into panels below.

    Source words stand over their columns if all fit, else on steps above narrow columns, and on a
    very narrow console they are numbered.
    """
    drawn = labelled_map(weights, source=source, target=target)
    width = max(NARROWEST, console_width)
    words = [readable_label(word, longest=LONGEST_SOURCE) for word in drawn.source]
    labels = [readable_label(word, longest=LONGEST_TARGET) for word in drawn.target]
    label_width = min(max(cell_len(label) for label in labels), LONGEST_TARGET, width // 3)
    room = width - label_width - 1

    picture = Text(no_wrap=True, overflow="crop")
    for panel in _panels(words, room):
        if panel.first > 0:
            picture.append("\n")
        for line in panel.header:
            picture.append(" " * (label_width + 1)).append_text(line).append("\n")
        for row, label in enumerate(labels):
            picture.append(_right_aligned(label, label_width) + " ")
            picture.append_text(_cells(drawn, row, panel)).append("\n")
    legend = _legend(drawn.limit)
    picture.append(" " * min(label_width + 1, width - legend.cell_len)).append_text(legend)
    return picture


def _panels(words: Sequence[str], room: int) -> list[Panel]:
    """Choose the most readable header that the room allows."""
    widths = [max(NARROW_CELL, cell_len(word)) for word in words]
    if sum(widths) + len(widths) - 1 <= room:
        return [_words_over_columns(words, widths)]
    stepped = _stepped_panels(words, room)
    fewest_columns = min(8, len(words))
    if max(len(panel.widths) for panel in stepped) >= fewest_columns:
        return stepped
    return _numbered_panels(words, room)


def _words_over_columns(words: Sequence[str], widths: Sequence[int]) -> Panel:
    header = Text(" ").join(
        Text(set_cell_size(word, width)) for word, width in zip(words, widths, strict=True)
    )
    return Panel(first=0, widths=tuple(widths), header=(header,))


def _stepped_panels(words: Sequence[str], room: int) -> list[Panel]:
    """Put each word on a line of its own, with a thread down to its column."""
    step = NARROW_CELL + 1
    panels, first = [], 0
    while first < len(words):
        columns = 1
        while (
            first + columns < len(words)
            and columns * step + max(NARROW_CELL, cell_len(words[first + columns])) <= room
        ):
            columns += 1
        header = []
        for column, word in enumerate(words[first : first + columns]):
            threads = Text().append("│".ljust(step) * column, FAINT)
            header.append(threads.append(set_cell_size(word, min(cell_len(word), room))))
        panels.append(Panel(first, (NARROW_CELL,) * columns, tuple(header)))
        first += columns
    return panels


def _numbered_panels(words: Sequence[str], room: int) -> list[Panel]:
    """Number the columns, and list the words above them."""
    digits = len(str(len(words)))
    cell = max(NARROW_CELL, digits)
    columns = max(1, (room + 1) // (cell + 1))
    panels = []
    for first in range(0, len(words), columns):
        shown = words[first : first + columns]
        numbers = range(first + 1, first + 1 + len(shown))
        named = [
            Text(set_cell_size(f"{number:>{digits}} {word}", room).rstrip(), style=FAINT)
            for number, word in zip(numbers, shown, strict=True)
        ]
        over = Text(" ".join(f"{number:>{cell}}" for number in numbers))
        panels.append(Panel(first, (cell,) * len(shown), (*named, over)))
    return panels


def _cells(drawn: LabelledMap, row: int, panel: Panel) -> Text:
    """Return one row of shaded cells."""
    line = Text()
    gap = _shade_style(0.0)
    for column, width in enumerate(panel.widths):
        share = float(drawn.weights[row, panel.first + column]) / drawn.limit
        if column > 0:
            line.append(" ", gap)
        line.append(_shade_character(share) * width, _shade_style(share))
    return line


def _legend(limit: float) -> Text:
    """Return the scale: which shade is which weight."""
    legend = Text().append("0 ", FAINT)
    for step in range(len(SHADES)):
        share = step / (len(SHADES) - 1)
        legend.append(_shade_character(share) * NARROW_CELL, _shade_style(share))
    return legend.append(f" {limit:.2g}", FAINT)


def _shade_character(share: float) -> str:
    steps = len(SHADES) - 1
    return SHADES[round(min(1.0, max(0.0, share)) * steps)]


def _shade_style(share: float) -> Style:
    colour = Color.from_rgb(*light_in_the_dark(share))
    return Style(color=colour, bgcolor=colour)


def _right_aligned(label: str, width: int) -> str:
    shown = label if cell_len(label) <= width else set_cell_size(label, width - 1) + "…"
    return " " * (width - cell_len(shown)) + shown
