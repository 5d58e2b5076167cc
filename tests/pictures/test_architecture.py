"""Diagrams of models: everything is drawn once, nothing over another, equal layers together."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.base.results import Block, BlockDiagram, Connection
from regard.pictures.architecture import architecture_svg, draw_architecture, typeset
from regard.pictures.layout import Box, Router, boxes_of, collapsed, columns_of


def layer(number: int, below: str, side: str, *, wide: int = 32) -> list[Block]:
    """A sublayer with its residual, as Transformers have them."""
    name, shape = f"{side}.{number}", ("batch", "time", 8)
    return [
        Block(f"{name}.attention", "Self-attention", "attention", shape, (Connection(below),),
              side=side, layer=number, note="2 heads", parameters=wide),
        Block(f"{name}.norm", "Add & norm", "norm", shape,
              (Connection(f"{name}.attention"), Connection(below, "residual")),
              side=side, layer=number),
    ]  # fmt: skip


def half(side: str, layers: int, *, memory: str | None = None) -> list[Block]:
    shape = ("batch", "time", 8)
    begin = [
        Block(f"{side}.in", "tokens", "input", ("batch", "time"), side=side),
        Block(f"{side}.embedding", "Embedding", "embedding", shape, (Connection(f"{side}.in"),),
              side=side, parameters=80),
        Block(f"{side}.positions", "Sinusoidal positions", "positions", ("time", 8), side=side),
        Block(f"{side}.sum", "+", "add", shape,
              (Connection(f"{side}.embedding"), Connection(f"{side}.positions")), side=side),
    ]  # fmt: skip
    below = f"{side}.sum"
    for number in range(layers):
        begin += layer(number, below, side)
        below = f"{side}.{number}.norm"
    if memory is not None:
        links = (Connection(below), Connection(memory, "h_1 ... h_T"),
                 Connection("encoder.sum", "s_0"),
                 Connection(f"{side}.last", "s_{i-1}", earlier=True))  # fmt: skip
        begin.append(Block(f"{side}.cross", "Attention", "attention", shape, links, side=side))
        links = (
            Connection(f"{side}.cross"),
            Connection(below, "s_i"),
            Connection(f"{side}.sum", "y_{i-1}"),
        )
        begin.append(Block(f"{side}.last", "GRU", "recurrent", shape, links, side=side))
    return begin


PLAN = BlockDiagram((*half("encoder", 6), *half("decoder", 4, memory="encoder.5.norm")))


def test_equal_layers_are_drawn_once() -> None:
    shown, repeats, stands_for = collapsed(half("encoder", 6))
    assert [block.name for block in shown if block.layer is not None] == [
        "encoder.0.attention", "encoder.0.norm",
    ]  # fmt: skip
    assert [(one.first, one.last, one.times) for one in repeats] == [
        ("encoder.0.attention", "encoder.0.norm", 6)
    ]
    assert stands_for["encoder.5.norm"] == "encoder.0.norm"


@pytest.mark.parametrize(
    ("widths", "drawn", "times"),
    [((1, 1, 1, 1), 1, 4), ((1, 2, 1, 2), 2, 2), ((1, 2, 2, 1), 4, 0), ((1,), 1, 0)],
)  # fmt: skip
def test_layers_that_take_turns_are_drawn_together(
    widths: tuple[int, ...], drawn: int, times: int
) -> None:
    blocks = [
        one for number, wide in enumerate(widths) for one in layer(number, "x", "", wide=wide)
    ]
    shown, repeats, _ = collapsed(blocks)
    assert len(shown) == 2 * drawn
    assert [one.times for one in repeats] == ([times] if times else [])


def places() -> dict[str, Box]:
    boxes: dict[str, Box] = {}
    for number, column in enumerate(columns_of(PLAN)):
        boxes |= boxes_of(column, 5.0 * number)
    return boxes


def test_no_box_covers_another() -> None:
    for one, other in combinations(places().values(), 2):
        apart = abs(one.x - other.x) >= (one.width + other.width) / 2
        assert apart or one.bottom >= other.top or other.bottom >= one.top


def test_every_link_has_a_way_that_ends_at_its_box() -> None:
    columns, boxes = columns_of(PLAN), places()
    routes = list(Router(columns, boxes).routes())
    links = sum(len(block.inputs) for column in columns for block in column.blocks)
    assert len(routes) == links + 1  # and what leaves the model
    edges = {
        point
        for box in boxes.values()
        for point in ((box.x, box.bottom), *((box.x + side * box.width / 2, box.middle + up)
                      for side in (-1, 1) for up in (0, 0.12, -0.12)))
    }  # fmt: skip
    for route in routes[:-1]:
        end = route.points[-1]
        assert any(abs(end[0] - x) + abs(end[1] - y) < 1e-9 for x, y in edges), route


def test_the_diagram_says_everything() -> None:
    svg = architecture_svg(PLAN, title="a model")
    texts = re.findall(r">([^<>]+)</text>", svg)
    for wanted in ("a model: 480 parameters", "6 ×", "4 ×", "Self-attention", "Add &amp; norm",
                   "Sinusoidal", "tokens", "time × 8", "80"):  # fmt: skip
        assert wanted in texts, wanted
    assert architecture_svg(PLAN, title="a model") == svg


def test_indices_are_set_small() -> None:
    assert typeset("e_ij = v^T tanh(W s_{i-1})") == "$e_{ij}$ = $v^{T}$ tanh(W $s_{i-1}$)"
    assert typeset("h_1 ... h_T costs $5") == r"$h_{1}$ ... $h_{T}$ costs \$5"
    assert typeset("c = sum_t alpha_t h_t") == "c = $∑_{t}$ $α_{t}$ $h_{t}$"
    assert typeset("feed_forward") == "feed_forward"


def test_files(tmp_path: Path) -> None:
    for name in ("a.png", "a.svg", "a.pdf"):
        draw_architecture(PLAN, tmp_path / name, title="a model")
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(RegardError, match="cannot tell a format"):
        draw_architecture(PLAN, tmp_path / "a.txt", title="a model")
