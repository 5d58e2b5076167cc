"""Where the boxes and arrows of a diagram go: columns from below, equal layers once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from regard.base.results import Block, BlockDiagram, Connection

Align: TypeAlias = Literal["left", "center", "right"]

# Inches.
WIDTH, SIDE_WIDTH = 2.75, 1.3
TALL, LOW, DOT = 0.5, 0.3, 0.24
GAP, FRAME = 0.36, 0.2
LANE, LABELLED_LANE, MARGIN, BETWEEN = 0.17, 0.36, 0.62, 1.45


@dataclass(frozen=True)
class Repeat:
    """Layers that are drawn once: the first and last name within a column, and how often."""

    first: str
    last: str
    times: int


@dataclass(frozen=True)
class Column:
    """One half of a model: what is drawn of it, from below, and which layers stand for several."""

    side: str
    blocks: tuple[Block, ...]
    beside: tuple[Block, ...]
    repeats: tuple[Repeat, ...]
    stands_for: dict[str, str]
    """The name of the block that is drawn for each one that is not."""


def columns_of(plan: BlockDiagram) -> list[Column]:
    """Return the halves of a model, with equal layers collapsed."""
    found = []
    for side in dict.fromkeys(block.side for block in plan.blocks):
        own = [block for block in plan.blocks if block.side == side]
        beside = tuple(block for block in own if block.role == "positions")
        shown, repeats, stands_for = collapsed([one for one in own if one not in beside])
        found.append(Column(side, tuple(shown), beside, tuple(repeats), stands_for))
    return found


def collapsed(blocks: Sequence[Block]) -> tuple[list[Block], list[Repeat], dict[str, str]]:
    """Return one of each run of equal layers, how often it comes, and which stands for which."""
    layers: dict[int, list[Block]] = {}
    for block in blocks:
        if block.layer is not None:
            layers.setdefault(block.layer, []).append(block)
    period = _period([[_looks(block) for block in layer] for layer in layers.values()])
    if len(layers) < 2 or period == len(layers):
        return list(blocks), [], {}
    stands_for = {
        block.name: layers[number % period][place].name
        for number, layer in layers.items()
        for place, block in enumerate(layer)
        if number >= period
    }
    shown = [block for block in blocks if block.name not in stands_for]
    repeat = Repeat(layers[0][0].name, layers[period - 1][-1].name, len(layers) // period)
    return shown, [repeat], stands_for


def _looks(block: Block) -> tuple[str, str, str, int]:
    return block.title, block.note, block.role, block.parameters


def _period(layers: Sequence[object]) -> int:
    """Return after how many layers the same ones come again."""
    for period in range(1, len(layers)):
        again = all(layer == layers[number % period] for number, layer in enumerate(layers))
        if len(layers) % period == 0 and again:
            return period
    return len(layers)


@dataclass(frozen=True)
class Box:
    """Where a block is drawn."""

    block: Block
    x: float
    bottom: float
    width: float
    height: float
    frame: float = 0.0
    """How far above it a frame ends, whose last box it is."""
    under: float = 0.07
    """How far above it what passes by the next box branches off."""

    @property
    def top(self) -> float:
        """The height of its upper edge."""
        return self.bottom + self.height

    @property
    def middle(self) -> float:
        """The height of its middle."""
        return self.bottom + self.height / 2


def _height(block: Block) -> float:
    if block.role == "input":
        return LOW
    if block.title == "+":
        return DOT
    return TALL if block.note else LOW


def boxes_of(column: Column, x: float) -> dict[str, Box]:
    """Return the places of a column's blocks, from below."""
    starts = {repeat.first for repeat in column.repeats}
    ends = {repeat.last for repeat in column.repeats}
    boxes: dict[str, Box] = {}
    inputs = [block for block in column.blocks if block.role == "input"]
    for place, block in enumerate(inputs):  # the first below the others, further ones beside them
        at = x + (WIDTH / 2 + 0.5 if place else 0.0)
        boxes[block.name] = Box(block, at, 0.0, 1.0, LOW)
    order = [block for block in column.blocks if block.role != "input"]
    y = LOW + GAP * 0.6 if inputs else 0.0
    for block, above in zip(order, [*order[1:], None], strict=True):
        y += FRAME if block.name in starts else 0.0
        width = DOT if block.title == "+" else WIDTH
        frame = FRAME if block.name in ends else 0.0
        under = GAP + 0.08 if above is not None and above.name in starts else 0.07
        boxes[block.name] = Box(block, x, y, width, _height(block), frame, under)
        y += _height(block) + GAP + frame
    for block in column.beside:
        reader = _reader_of(block.name, column.blocks, boxes)
        away = -1 if column.side == "encoder" else 1
        edge = x + away * (WIDTH / 2 + MARGIN + SIDE_WIDTH / 2)
        boxes[block.name] = Box(block, edge, reader.middle - TALL / 2, SIDE_WIDTH, TALL)
    return boxes


def _reader_of(name: str, blocks: Sequence[Block], boxes: dict[str, Box]) -> Box:
    return next(
        boxes[block.name] for block in blocks if any(link.block == name for link in block.inputs)
    )


@dataclass(frozen=True)
class Route:
    """An arrow through some points, with a label beside one of them."""

    points: tuple[tuple[float, float], ...]
    label: str = ""
    at: tuple[float, float] = (0.0, 0.0)
    align: Align = "center"
    dashed: bool = False


class Router:
    """Finds the ways of all links: straight up, beside a column, or from one half to the other."""

    def __init__(self, columns: Sequence[Column], boxes: dict[str, Box]):
        self.columns = columns
        self.boxes = boxes
        self.stands_for = {key: one for column in columns for key, one in column.stands_for.items()}
        self._taken: dict[str, list[tuple[str, float, float]]] = {}
        self._entered: dict[tuple[str, int], int] = {}
        self._left: set[str] = set()

    def routes(self) -> Iterator[Route]:
        """Yield the way of every link."""
        for column in self.columns:
            order = [block for block in column.blocks if block.role != "input"]
            labelled = any(_says_more(link) for block in order for link in block.inputs)
            step = LABELLED_LANE if labelled else LANE
            for place, block in enumerate(order):
                below = order[place - 1].name if place else None
                for link in block.inputs:
                    yield self._route(block, link, below=below, step=step)
        last = self.boxes[self.columns[-1].blocks[-1].name]
        yield Route(((last.x, last.top), (last.x, last.top + GAP)))

    def _route(self, block: Block, link: Connection, *, below: str | None, step: float) -> Route:
        source = self.boxes[self.stands_for.get(link.block, link.block)]
        target = self.boxes[block.name]
        if source.block.role == "positions":
            return _sideways(source, target, link)
        if source.block.side != block.side:
            return self._across(source, target, link)
        first = source.block.role == "input" and source.x == target.x and below is None
        if not link.earlier and (source.block.name == below or first):
            return Route(((source.x, source.top), (source.x, target.bottom)))
        return self._around(source, target, link, step)

    def _around(self, source: Box, target: Box, link: Connection, step: float) -> Route:
        """Pass by other boxes, or come from the step before, beside the column."""
        away = -1 if source.block.side == "encoder" else 1
        end = target.middle + self._enter(target, away)
        if source.block.role == "input":  # that stands beside the column
            edge = target.x + target.width / 2
            return Route(((source.x, source.top), (source.x, end), (edge, end)))
        begin, start = source.top + source.under, source.x
        if link.earlier:
            begin, start = source.middle, source.x + away * source.width / 2
        lane = self._lane(source.block.side, link, begin, end)
        x = target.x + away * (WIDTH / 2 + 0.14 + step * lane)
        edge = target.x + away * target.width / 2
        label = link.label if _says_more(link) else ""
        align: Align = "left" if away > 0 else "right"
        beside = (x + away * 0.05, begin + (0.1 if end > begin else -0.1))
        points = ((start, begin), (x, begin), (x, end), (edge, end))
        return Route(points, label, beside, align, dashed=link.earlier)

    def _across(self, source: Box, target: Box, link: Connection) -> Route:
        """Lead from one half of a model to the other: first from the top, then from the side."""
        end = target.middle + self._enter(target, -1)
        lane = self._lane("between", link, source.top, end)
        x = source.x + WIDTH / 2 + 0.6 + LANE * lane
        edge = target.x - target.width / 2
        begin: tuple[tuple[float, float], ...]
        if source.block.name in self._left:
            begin = ((source.x + source.width / 2, source.middle), (x, source.middle))
        else:
            over = source.top + source.frame + 0.12
            begin = ((source.x, source.top), (source.x, over), (x, over))
        self._left.add(source.block.name)
        label = (edge - 0.1, end + 0.09)
        return Route((*begin, (x, end), (edge, end)), link.label, label, "right")

    def _enter(self, target: Box, away: int) -> float:
        """Return how far from a box's middle its next arrow on this side arrives."""
        place = (target.block.name, away)
        number = self._entered.get(place, 0)
        self._entered[place] = number + 1
        return (0.0, -0.12, 0.12)[number % 3]

    def _lane(self, place: str, link: Connection, one: float, other: float) -> int:
        """Return the nearest lane that is free between two heights; a source keeps its lane."""
        low, high = min(one, other), max(one, other)
        key = f"{link.block} {link.earlier}"
        for lane in range(9):
            spans = self._taken.setdefault(f"{place} {lane}", [])
            if all(high <= start or low >= end or key == name for name, start, end in spans):
                spans.append((key, low, high))
                return lane
        return 9


def _says_more(link: Connection) -> bool:
    return link.label not in ("", "residual")


def _sideways(source: Box, target: Box, link: Connection) -> Route:
    away = 1 if source.x > target.x else -1
    begin = source.x - away * source.width / 2
    end = target.x + away * target.width / 2
    above = ((begin + end) / 2, source.middle + 0.08)
    return Route(((begin, source.middle), (end, source.middle)), link.label, above)
