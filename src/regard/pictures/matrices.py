"""Small matrices side by side, with their numbers: the steps of a calculation."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.pictures.canvas import FAINT, Records, figure_svg, save_figure
from regard.pictures.heat_map import weight_colours
from regard.pictures.labels import plain_text
from regard.pictures.positions import signed_colours

CELL = 0.46  # inches
LARGEST_WITH_NUMBERS = 160  # cells
GAP, ROW_GAP, LABELS = 0.55, 0.95, 0.75  # inches
WIDEST = 13.0  # inches of a row of matrices


@dataclass(frozen=True)
class NamedMatrix:
    """A named matrix; `weights` says that its rows are shares, which are never negative.

    A matrix with `new_line` begins a line of the picture.
    """

    name: str
    values: Float[np.ndarray, "rows columns"]
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    weights: bool = False
    new_line: bool = False

    def __post_init__(self) -> None:
        for names, size in zip((self.rows, self.columns), self.values.shape, strict=True):
            if names and len(names) != size:
                raise RegardError(f"{self.name}: {len(names)} labels do not fit {size} entries.")


def draw_matrices(
    matrices: Sequence[NamedMatrix], path: Path, *, title: str, note: str = ""
) -> None:
    """Draw the matrices to a PNG, SVG or PDF file, or write them as CSV or JSON."""
    draw = partial(_figure, matrices, title, note)
    save_figure(draw, path, data=partial(_records, matrices))


def matrices_svg(matrices: Sequence[NamedMatrix], *, title: str, note: str = "") -> str:
    """Return the same picture as SVG text, for a page."""
    return figure_svg(partial(_figure, matrices, title, note))


def _figure(matrices: Sequence[NamedMatrix], title: str, note: str) -> Figure:
    """Draw the matrices from left to right, in as many rows as they need."""
    lines = _lines(matrices)
    width = max(x + _size(matrix)[0] for line in lines for x, matrix in line)
    heights = [max(_size(matrix)[1] for _, matrix in line) for line in lines]
    height = sum(heights) + ROW_GAP * (len(lines) - 1)
    figure = Figure(figsize=(width, height))
    top = height
    for line_of, tallest in zip(lines, heights, strict=True):
        for x, matrix in line_of:
            across, down = _size(matrix)
            place = (x / width, (top - down) / height, across / width, down / height)
            _draw(figure.add_axes(place), matrix)
        top -= tallest + ROW_GAP
    figure.text(0, 1 + 0.72 / height, plain_text(title), fontsize=12, fontweight="bold")
    for number, line in enumerate(note.splitlines()):
        below = -(0.5 + 0.2 * number) / height
        figure.text(0, below, plain_text(line), fontsize=9, color=FAINT, va="top")
    return figure


def _lines(matrices: Sequence[NamedMatrix]) -> list[list[tuple[float, NamedMatrix]]]:
    """Return the matrices by line, each with its place from the left."""
    lines: list[list[tuple[float, NamedMatrix]]] = [[]]
    x = 0.0
    for matrix in matrices:
        before = (LABELS if matrix.rows else 0.0) + (GAP if lines[-1] else 0.0)
        full = x + before + _size(matrix)[0] > WIDEST
        if lines[-1] and (full or matrix.new_line):
            lines.append([])
            x, before = 0.0, LABELS if matrix.rows else 0.0
        lines[-1].append((x + before, matrix))
        x += before + _size(matrix)[0]
    return lines


def _size(matrix: NamedMatrix) -> tuple[float, float]:
    rows, columns = matrix.values.shape
    cell = CELL if matrix.values.size <= LARGEST_WITH_NUMBERS else 0.5 * CELL
    return max(columns * cell, 0.85), rows * cell


def _draw(axes: Axes, matrix: NamedMatrix) -> None:
    values = np.asarray(matrix.values, float)
    rows, columns = values.shape
    limit = 1.0 if matrix.weights else max(float(np.abs(values).max()), 1e-9)
    colours = weight_colours() if matrix.weights else signed_colours()
    axes.imshow(
        values,
        cmap=colours,
        vmin=0.0 if matrix.weights else -limit,
        vmax=limit,
        aspect="auto",
        interpolation="none",
    )
    numbered = values.size <= LARGEST_WITH_NUMBERS
    if numbered:
        for row, column in np.ndindex(values.shape):
            dark = abs(values[row, column]) > 0.6 * limit
            text = _short(float(values[row, column]))
            colour = "white" if dark else "#1f2328"
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_title(plain_text(matrix.name), fontsize=9.5, fontweight="normal", pad=6)
    axes.set_yticks(range(rows) if matrix.rows else [], [plain_text(each) for each in matrix.rows])
    columns_named = [plain_text(each) for each in matrix.columns]
    axes.set_xticks(range(columns) if matrix.columns else [], columns_named)
    axes.tick_params(length=0, pad=3, labelsize=8.5)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color("#e2e6ea")


def _short(value: float) -> str:
    """Return a number that fits a cell."""
    if abs(value) < 0.005:
        return "0"
    return f"{value:.0f}" if abs(value) >= 99.5 or float(value).is_integer() else f"{value:.2f}"


def _records(matrices: Sequence[NamedMatrix]) -> Records:
    """Return every cell with the matrix and the labels that it belongs to."""
    rows: list[tuple[str | int | float, ...]] = []
    for matrix in matrices:
        for row, column in np.ndindex(matrix.values.shape):
            rows.append(
                (
                    matrix.name,
                    matrix.rows[row] if matrix.rows else row,
                    matrix.columns[column] if matrix.columns else column,
                    float(matrix.values[row, column]),
                )
            )
    return Records(("matrix", "row", "column", "value"), rows)
