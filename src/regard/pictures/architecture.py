"""The plan of a model as a diagram: boxes from the input upwards, as papers draw them."""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from regard.base.results import Block, BlockDiagram
from regard.pictures.canvas import FAINT, INK, PALETTE, RULE, figure_svg, save_figure
from regard.pictures.labels import plain_text
from regard.pictures.layout import (
    BETWEEN,
    DOT,
    FRAME,
    MARGIN,
    WIDTH,
    Align,
    Box,
    Repeat,
    Route,
    Router,
    boxes_of,
    columns_of,
)

COLOURS = {
    "embedding": PALETTE[5],
    "positions": PALETTE[7],
    "recurrent": PALETTE[2],
    "attention": PALETTE[1],
    "convolution": PALETTE[2],
    "feed-forward": PALETTE[0],
    "norm": PALETTE[4],
    "linear": PALETTE[3],
    "softmax": PALETTE[2],
}
ARROW: dict[str, Any] = {
    "arrowstyle": "-|>,head_length=3.5,head_width=1.8",
    "shrinkA": 0,
    "shrinkB": 0,
}
# A letter with what is written below or above it, as h_T, s_{i-1} or v^T.
INDEXED = re.compile(
    r"(?<![A-Za-z])([A-Za-z\u03b1-\u03c9\u2211])((?:[_^](?:\{[^}]*\}|\w(?:-\d)?j?))+)"
)
LETTERS = {"alpha": "\u03b1", "sum": "\u2211"}
LEGEND = "In a box: its parameters. Beside an arrow: the shape of what it carries."


def draw_architecture(plan: BlockDiagram, path: Path, *, title: str) -> None:
    """Draw the plan of a model to a PNG, SVG or PDF file."""
    save_figure(partial(_figure, plan, title), path)


def architecture_svg(plan: BlockDiagram, *, title: str) -> str:
    """Return the same diagram as SVG text, for a page."""
    return figure_svg(partial(_figure, plan, title))


def typeset(text: str) -> str:
    """Return a text for matplotlib in which indices are set as formulas."""
    escaped = plain_text(text).replace("$", r"\$")
    for name, letter in LETTERS.items():
        escaped = re.sub(rf"\b{name}(?=_|\b)", letter, escaped)
    return INDEXED.sub(lambda found: f"${found[1]}{_braced(found[2])}$", escaped)


def _braced(indices: str) -> str:
    return re.sub(r"([_^])([^{_^]+)", r"\1{\2}", indices)


def _figure(plan: BlockDiagram, title: str) -> Figure:
    columns = columns_of(plan)
    step = WIDTH + BETWEEN + MARGIN
    boxes: dict[str, Box] = {}
    for number, column in enumerate(columns):
        boxes |= boxes_of(column, number * step)
    routes = list(Router(columns, boxes).routes())
    reach = [x for route in routes for x, _ in route.points]
    reach += [box.x + side * box.width / 2 for box in boxes.values() for side in (-1, 1)]
    left, right = min(reach) - MARGIN, max(reach) + MARGIN
    top = max(box.top for box in boxes.values()) + 0.3
    figure = Figure(figsize=(right - left, top + 0.85))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(left, right)
    axes.set_ylim(-0.15, top + 0.7)
    axes.axis("off")
    head = f"{plain_text(title)}: {plan.parameters:,} parameters"
    axes.text(left + 0.1, top + 0.55, head, fontsize=12, fontweight="bold", va="center")
    axes.text(left + 0.1, top + 0.3, LEGEND, fontsize=8, color=FAINT, va="center")
    for column in columns:
        for repeat in column.repeats:
            _draw_frame(axes, boxes[repeat.first], boxes[repeat.last], repeat, column.side)
    for route in routes:
        _draw_route(axes, route)
    for box in boxes.values():
        _draw_box(axes, box)
        _draw_shape(axes, box)
    return figure


def _draw_frame(axes: Axes, first: Box, last: Box, repeat: Repeat, side: str) -> None:
    pad = 0.42
    x, y = first.x - WIDTH / 2 - pad, first.bottom - FRAME - 0.04
    height = last.top + FRAME - y + 0.04
    axes.add_patch(
        FancyBboxPatch(
            (x, y), WIDTH + 2 * pad, height,
            boxstyle="round,pad=0,rounding_size=0.12", fc=RULE, ec=FAINT, lw=0.8, alpha=0.35,
        )
    )  # fmt: skip
    outer = x - 0.08 if side == "encoder" else x + WIDTH + 2 * pad + 0.08
    align = "right" if side == "encoder" else "left"
    text = f"{repeat.times} ×"
    axes.text(outer, y + height / 2, text, ha=align, va="center", fontsize=12, fontweight="bold")


def _draw_box(axes: Axes, box: Box) -> None:
    block = box.block
    if block.role == "input":
        axes.text(box.x, box.middle + 0.04, plain_text(block.title), ha="center", va="center")
        _small(axes, box.x, box.bottom - 0.02, _sizes(block), ha="center")
        return
    colour = COLOURS.get(block.role, FAINT)
    if block.title == "+":
        axes.add_patch(Circle((box.x, box.middle), DOT / 2, fc="none", ec=INK, lw=1))
        half = DOT / 2 * 0.6
        axes.plot([box.x - half, box.x + half], [box.middle] * 2, color=INK, lw=1)
        axes.plot([box.x] * 2, [box.middle - half, box.middle + half], color=INK, lw=1)
        return
    left, right = box.x - box.width / 2, box.x + box.width / 2
    for fill, edge, alpha in ((colour, "none", 0.16), ("none", colour, 1.0)):
        axes.add_patch(
            FancyBboxPatch(
                (left, box.bottom), box.width, box.height,
                boxstyle="round,pad=0,rounding_size=0.06", fc=fill, ec=edge, lw=1.1, alpha=alpha,
            )
        )  # fmt: skip
    narrow = box.width < WIDTH
    if narrow:
        words = plain_text(block.title).rsplit(" ", 1)
        axes.text(box.x, box.middle, "\n".join(words), ha="center", va="center", fontsize=8)
        if block.parameters:
            _small(axes, box.x, box.bottom - 0.1, f"{block.parameters:,}", ha="center")
        return
    line = box.middle + (0.1 if block.note else 0)
    title = typeset(block.title)
    axes.text(left + 0.1, line, title, va="center", fontsize=9.5, parse_math=True)
    counted = f"{block.parameters:,}" if block.parameters or not block.shared else "shared"
    if block.parameters or block.shared:
        axes.text(right - 0.1, line, counted, ha="right", va="center", fontsize=8, color=INK)
    if block.note:
        note, below = typeset(block.note), box.middle - 0.11
        axes.text(left + 0.1, below, note, va="center", fontsize=7.5, color=FAINT, parse_math=True)


def _small(axes: Axes, x: float, y: float, text: str, *, ha: Align) -> None:
    axes.text(x, y, typeset(text), fontsize=7, color=FAINT, va="center", ha=ha, parse_math=True)


def _draw_shape(axes: Axes, box: Box) -> None:
    """Write the shape of what leaves a box beside the arrow that leaves it."""
    block = box.block
    if block.role in ("input", "positions") or not block.shape or block.title == "+":
        return
    _small(axes, box.x + 0.07, box.top + box.frame + 0.23, _sizes(block), ha="left")


def _sizes(block: Block) -> str:
    sizes = block.shape[1:] if block.shape[:1] == ("batch",) else block.shape
    return " × ".join(map(str, sizes))


def _draw_route(axes: Axes, route: Route) -> None:
    style = (0, (3, 2)) if route.dashed else "solid"
    for (x, y), (to_x, to_y) in pairwise(route.points[:-1]):
        axes.plot([x, to_x], [y, to_y], color=FAINT, lw=1, ls=style, solid_capstyle="round")
    begin, end = route.points[-2:]
    axes.add_patch(FancyArrowPatch(begin, end, color=FAINT, lw=1, ls=style, **ARROW))
    if route.label:
        _small(axes, *route.at, route.label, ha=route.align)
