"""The attention heat map as text for a terminal: target words down, source words across."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.style import Style
from rich.text import Text

from regard.pictures.canvas import colour_on_dark
from regard.pictures.labels import LabelledMap, labelled_map, readable_label

# A cell has its shade twice, as a character and as a colour. The character has the colour of its
# background, so that it is visible only where there are no colours.
SHADES = " ░▒▓█"
NARROW_CELL = 2
LONGEST_TARGET = 16
LONGEST_SOURCE = 14
NARROWEST = 20

DIM = Style(dim=True)


@dataclass(frozen=True)
class ColumnGroup:
    """Columns of a map that are shown side by side, from `first`, each with its width."""

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
    """Return a heat map no wider than the console; columns that do not fit are shown below.

    Source words are above their columns if all fit, or else on steps above narrow columns; on a
    very narrow console the columns are numbered.
    """
    drawn = labelled_map(weights, source=source, target=target)
    width = max(NARROWEST, console_width)
    words = [readable_label(word, longest=LONGEST_SOURCE) for word in drawn.source]
    labels = [readable_label(word, longest=LONGEST_TARGET) for word in drawn.target]
    label_width = min(max(cell_len(label) for label in labels), LONGEST_TARGET, width // 3)
    room = width - label_width - 1

    picture = Text(no_wrap=True, overflow="crop")
    for group in _groups(words, room):
        if group.first > 0:
            picture.append("\n")
        for line in group.header:
            picture.append(" " * (label_width + 1)).append_text(line).append("\n")
        for row, label in enumerate(labels):
            picture.append(_right_aligned(label, label_width) + " ")
            picture.append_text(_cells(drawn, row, group)).append("\n")
    legend = _legend(drawn.limit)
    picture.append(" " * min(label_width + 1, width - legend.cell_len)).append_text(legend)
    return picture


def _groups(words: Sequence[str], room: int) -> list[ColumnGroup]:
    """Return groups of columns with the most readable header that fits."""
    widths = [max(NARROW_CELL, cell_len(word)) for word in words]
    if sum(widths) + len(widths) - 1 <= room:
        return [_words_over_columns(words, widths)]
    stepped = _stepped_groups(words, room)
    fewest_columns = min(8, len(words))
    if max(len(group.widths) for group in stepped) >= fewest_columns:
        return stepped
    return _numbered_groups(words, room)


def _words_over_columns(words: Sequence[str], widths: Sequence[int]) -> ColumnGroup:
    header = Text(" ").join(
        Text(set_cell_size(word, width)) for word, width in zip(words, widths, strict=True)
    )
    return ColumnGroup(first=0, widths=tuple(widths), header=(header,))


def _stepped_groups(words: Sequence[str], room: int) -> list[ColumnGroup]:
    """Put each word on a line of its own, with a line down to its column."""
    step = NARROW_CELL + 1
    groups, first = [], 0
    while first < len(words):
        columns = 1
        while (
            first + columns < len(words)
            and columns * step + max(NARROW_CELL, cell_len(words[first + columns])) <= room
        ):
            columns += 1
        header = []
        for column, word in enumerate(words[first : first + columns]):
            lines = Text().append("│".ljust(step) * column, DIM)
            header.append(lines.append(set_cell_size(word, min(cell_len(word), room))))
        groups.append(ColumnGroup(first, (NARROW_CELL,) * columns, tuple(header)))
        first += columns
    return groups


def _numbered_groups(words: Sequence[str], room: int) -> list[ColumnGroup]:
    """Number the columns, and list the words above them."""
    digits = len(str(len(words)))
    cell = max(NARROW_CELL, digits)
    columns = max(1, (room + 1) // (cell + 1))
    groups = []
    for first in range(0, len(words), columns):
        shown = words[first : first + columns]
        numbers = range(first + 1, first + 1 + len(shown))
        named = [
            Text(set_cell_size(f"{number:>{digits}} {word}", room).rstrip(), style=DIM)
            for number, word in zip(numbers, shown, strict=True)
        ]
        over = Text(" ".join(f"{number:>{cell}}" for number in numbers))
        groups.append(ColumnGroup(first, (cell,) * len(shown), (*named, over)))
    return groups


def _cells(drawn: LabelledMap, row: int, group: ColumnGroup) -> Text:
    """Return one row of shaded cells."""
    line = Text()
    gap = _shade_style(0.0)
    for column, width in enumerate(group.widths):
        share = float(drawn.weights[row, group.first + column]) / drawn.limit
        if column > 0:
            line.append(" ", gap)
        line.append(_shade_character(share) * width, _shade_style(share))
    return line


def _legend(limit: float) -> Text:
    """Return the scale from shades to weights."""
    legend = Text().append("0 ", DIM)
    for step in range(len(SHADES)):
        share = step / (len(SHADES) - 1)
        legend.append(_shade_character(share) * NARROW_CELL, _shade_style(share))
    return legend.append(f" {limit:.2g}", DIM)


def _shade_character(share: float) -> str:
    steps = len(SHADES) - 1
    return SHADES[round(min(1.0, max(0.0, share)) * steps)]


def _shade_style(share: float) -> Style:
    colour = Color.from_rgb(*colour_on_dark(share))
    return Style(color=colour, bgcolor=colour)


def _right_aligned(label: str, width: int) -> str:
    shown = label if cell_len(label) <= width else set_cell_size(label, width - 1) + "…"
    return " " * (width - cell_len(shown)) + shown
