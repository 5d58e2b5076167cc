"""Every number inside a layer, named as lectures name them: heads of attention, gates of cells.

X   Q = X W^Q   K = X W^K   V = X W^V   Q K^T   / sqrt(d_k)   mask   softmax   Z = weights V
[Z_1; Z_2; ...] W^O   residual   norm   feed-forward
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from regard.attention.masks import forbidden
from regard.attention.positions import SegmentPositions
from regard.attention.probe import Recorder
from regard.attention.scores import AdditiveScore
from regard.base.shapes import Float, Tensor
from regard.models.inspection import TracedArray
from regard.recurrent.cells import CellState, CellWeights, RecurrentStack
from regard.recurrent.equations import gates, step

# What a mixture of experts adds.
ROUTING_FORMULAS = {"gate scores": "x W_g", "gate": "softmax(gate scores), 0 if not chosen"}


class Sides(NamedTuple):
    """The axes of attention: who attends, to whom, and what the keys are made of."""

    target: str
    source: str
    memory: str = "X"


class Sublayer(NamedTuple):
    """Where the parts of self- or cross-attention are in a layer, and what enters it."""

    attention: str
    residual: str
    entering: tuple[str, str]


SUBLAYERS = {
    "encoder": Sublayer("attention", "attention_residual", ("encoder", "features")),
    "decoder": Sublayer("self_attention", "self_residual", ("decoder", "features")),
    "cross": Sublayer("cross_attention", "cross_residual", ("decoder", "attended")),
}


def attention_arrays(
    recorder: Recorder, layer: Any, part: str, number: int, sides: Sides
) -> list[TracedArray]:
    """Return what was recorded of the attention of a layer, in the order of its computation."""
    places = SUBLAYERS[part]
    attention = getattr(layer, places.attention, None) or layer.attention
    residual = getattr(layer, places.residual, None) or layer.attention_residual
    if (part, number, "weights") not in recorder.values:
        return []  # a recurrent unit in the place of self-attention

    def of(name: str, where: str = part) -> Tensor:
        return recorder.get(where, number, name)[0]

    where, name = places.entering
    features, change = of(name, where), of("attention")
    rows, columns = sides.target, sides.source
    by_head, dim = ("head", rows, "dim"), "dim"
    pairs = ("head", rows, columns)
    keyless = attention.pattern is not None and attention.pattern.keys_are_queries
    segments = isinstance(attention.positions, SegmentPositions)
    scores = of("scores") if (part, number, "scores") in recorder.values else None
    made = [
        ("features", (rows, dim), features, "what enters the layer"),
        ("X", (rows, dim), residual.enter(features[None])[0], _entered(residual)),
        ("Q", by_head, of("queries"), "X W^Q + u" if segments else "X W^Q"),
        ("K", ("head", columns, dim), of("keys"), "Q / |Q|" if keyless else f"{sides.memory} W^K"),
        ("V", ("head", columns, dim), of("values"), f"{sides.memory} W^V"),
    ]
    if attention.score is None and scores is not None:
        product = of("queries") @ of("keys").mT
        made.append(("QK^T", pairs, product, "Q K^T"))
    if scores is not None:
        formula = "Q K^T / sqrt(d_k)" if attention.score is None else attention.score.formula
        made.append(("scores", pairs, scores, formula.format(s="q_i")))
        allowed = torch.ones_like(scores)
        if (part, number, "masked") in recorder.values:
            allowed = (of("masked") > forbidden(scores.dtype) / 2).to(scores.dtype)
        made.append(("mask", pairs, allowed, "1: may attend"))
    made += [
        ("weights", pairs, of("weights"), "softmax(scores) over what may be attended to"),
        ("Z", by_head, of("context"), "weights V"),
        ("ZW^O", (rows, dim), change, "[Z_1; Z_2; ...] W^O"),
        ("residual", (rows, dim), features + change, "features + Z W^O"),
    ]
    if not residual.pre_norm:
        made.append(("norm", (rows, dim), residual.norm(features + change), "norm(residual)"))
    return [_traced(f"{part}.{number}.{title}", *rest) for title, *rest in made]


def feed_forward_arrays(
    recorder: Recorder, layer: Any, part: str, number: int, axis: str
) -> list[TracedArray]:
    """Return what was recorded of the feed-forward network of a layer, and what leaves it."""
    crosses = part == "decoder" and ("cross", number, "attended") in recorder.values
    last = "cross" if crosses else part
    before, change = (
        recorder.get(last if name == "attended" else part, number, name)[0]
        for name in ("attended", "feed_forward")
    )
    residual = layer.feed_forward_residual
    title = f"{part}.{number}"
    mixed = (part, number, "gate") in recorder.values
    gate = [
        _traced(f"{title}.{name}", (axis, "expert"), recorder.get(part, number, name)[0], formula)
        for name, formula in ROUTING_FORMULAS.items()
        if mixed
    ]
    formula = "sum_e gate_e f_e(x)" if mixed else "f(x W_1 + b_1) W_2 + b_2"
    return [
        _traced(
            f"{title}.FFN input", (axis, "dim"), residual.enter(before[None])[0], _entered(residual)
        ),
        *gate,
        _traced(f"{title}.FFN", (axis, "dim"), change, formula),
        _traced(
            f"{title}.output",
            (axis, "dim"),
            residual.leave(before[None], change[None])[0],
            "residual + FFN" if residual.pre_norm else "norm(residual + FFN)",
        ),
    ]


def lookup_arrays(
    recorder: Recorder,
    score: Any,
    memory: Float[Tensor, "batch source key_dim"],
    *,
    query: str,
) -> list[TracedArray]:
    """Return what a recurrent decoder's lookup compared and mixed: vectors, scores, weights.

    `compared queries` and `compared keys` are the vectors whose products are the scores; the
    additive score has `W s`, `U h` and `v` in their place. `query` is the query's formula.
    """

    def of(name: str) -> Tensor:
        return torch.cat(recorder.values["cross", 0, name], dim=-2)[0]

    asked, keys = of("query")[None], score.prepare(memory)
    pairs = ("head", "target", "source")
    made: list[tuple[str, tuple[str, ...], Tensor, str]] = []
    if score.projects_values:
        made += [
            ("q", ("target", "dim"), score.query_weights(asked)[0], "W^q s"),
            ("k", ("source", "dim"), score.key_weights(memory)[0], "W^k h_j"),
            ("v", ("source", "dim"), score.value_weights(memory)[0], "W^v h_j"),
        ]
    compared = score.compared(asked, keys)
    if compared is not None:
        ours, theirs = (each[0] for each in compared)
        made += [
            ("compared queries", ("head", "target", "dim"), ours, score.query_formula),
            ("compared keys", ("head", "source", "dim"), theirs, score.key_formula),
        ]
    elif isinstance(score, AdditiveScore):
        made += [
            ("W s", ("target", "dim"), score.query_weights(asked)[0], f"W {query}"),
            ("U h", ("source", "dim"), keys[0], "U h_j"),
            ("v^T", ("one", "dim"), score.readout.weight, "v"),
        ]
    mixed = recorder.values["cross", 0, "values"][-1][0]
    made += [
        ("scores", pairs, of("scores"), score.formula),
        ("weights", pairs, of("weights"), "alpha_ij = softmax_j(e_ij)"),
        ("V", ("head", "source", "dim"), mixed, score.value_formula),
        ("Z", ("head", "target", "dim"), of("context"), "c_i = sum_j alpha_ij V_j"),
    ]
    return [
        _traced(f"cross.0.{name}", axes, values, formula.replace("{s}", query))
        for name, axes, values, formula in made
    ]


def _entered(residual: Any) -> str:
    return "norm(features)" if residual.pre_norm else "features"


def _traced(name: str, axes: tuple[str, ...], values: Tensor, formula: str) -> TracedArray:
    return TracedArray(name, axes, values.detach().cpu().numpy(), formula)


GATE_FORMULAS = {
    "lstm": {
        "f": "sigmoid(U_f x_t + W_f h_{t-1} + b_f)",
        "i": "sigmoid(U_i x_t + W_i h_{t-1} + b_i)",
        "o": "sigmoid(U_o x_t + W_o h_{t-1} + b_o)",
        "c~": "tanh(U_c x_t + W_c h_{t-1} + b_c)",
        "c": "f_t c_{t-1} + i_t c~_t",
        "h": "o_t tanh(c_t)",
    },
    "gru": {
        "z": "sigmoid(U_z x_t + W_z h_{t-1} + b_z)",
        "r": "sigmoid(U_r x_t + W_r h_{t-1} + b_r)",
        "h~": "tanh(U x_t + b + r_t (W h_{t-1} + b'))",
        "h": "z_t h_{t-1} + (1 - z_t) h~_t",
    },
    "gated": {
        "g": "sigmoid(W^gs s_{t-1} + W^gx x_t)",
        "s~": "tanh(W^ss s_{t-1} + W^sx x_t)",
        "h": "(1 - g_t) s_{t-1} + g_t s~_t",
    },
    "tanh": {"h": "tanh(U x_t + W h_{t-1} + b)"},
}


@torch.no_grad()
def gate_arrays(
    stack: RecurrentStack,
    inputs: Float[Tensor, "time input_dim"],
    state: CellState,
    *,
    name: str,
    axis: str,
) -> list[TracedArray]:
    """Return the gates and states of every layer and direction at each time, by the equations."""
    directions = 2 if stack.bidirectional else 1
    found = []
    for layer in range(stack.layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            cell, begin = stack.cells[number], tuple(part[number, :1] for part in state)
            values = _steps(cell, inputs, begin, backward=direction == 1)
            suffix = "" if directions == 1 else (" forward", " backward")[direction]
            for title, formula in GATE_FORMULAS[cell.kind].items():
                found.append(
                    _traced(
                        f"{name}.{layer}.{title}{suffix}", (axis, "unit"), values[title], formula
                    )
                )
            outputs.append(values["h"])
        joined = torch.cat(outputs, dim=-1)
        inputs = joined + inputs if layer and stack.residual else joined
    return found


def _steps(
    cell: CellWeights, inputs: Tensor, state: CellState, *, backward: bool
) -> dict[str, Tensor]:
    """Return each value at each time, in the order of the inputs."""
    times: Sequence[int] = range(len(inputs))
    rows: dict[int, dict[str, Tensor]] = {}
    for time in reversed(times) if backward else times:
        x = inputs[time : time + 1]
        values = gates(cell, x, state)
        state = step(cell, x, state)
        rows[time] = {**values, "h": state[0]}
        if len(state) > 1:
            rows[time]["c"] = state[1]
    return {title: torch.cat([rows[time][title] for time in times]) for title in rows[0]}
