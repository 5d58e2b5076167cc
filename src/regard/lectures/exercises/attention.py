"""Exercises on attention as a whole: context, causality and heads."""

import math
from typing import Any

import torch

from regard.base.shapes import Tensor
from regard.lectures.exercises.exercise import (
    Exercise,
    Function,
    MistakeError,
    WrongVersion,
    call,
    same,
)
from regard.lectures.exercises.scores import NEVER, draw, masked_softmax, scaled_scores


def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return context and weights of scaled dot-product attention."""
    scores = scaled_scores(query, keys)
    weights = masked_softmax(scores, mask[:, None].expand_as(scores))
    return weights @ values, weights


def _attend_cases() -> list[tuple[Any, ...]]:
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]], dtype=torch.bool)
    one = (*draw(8, (2, 3, 4), (2, 4, 4), (2, 4, 6)), mask)
    square = (*draw(9, (1, 4, 9), (1, 4, 9), (1, 4, 9)), torch.ones(1, 4, dtype=torch.bool))
    return [one, square]


def _padding_is_not_read(solution: Function) -> None:
    query, keys, values, mask = _attend_cases()[0]
    before = call(solution, query, keys, values, mask)[0]
    for changed in ((keys + 3 * ~mask[..., None], values), (keys, values + 3 * ~mask[..., None])):
        if not same(call(solution, query, *changed, mask)[0], before):
            raise MistakeError(
                "Padding is read: the context changes when only hidden keys and values change."
            )


def _attend_without(change: str) -> Function:
    def wrong(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        scores = query @ keys.mT / (1 if change == "scale" else math.sqrt(query.shape[-1]))
        scores = scores.masked_fill(~mask[:, None], NEVER)
        weights = torch.softmax(scores, -2 if change == "axis" else -1).nan_to_num(0)
        mixed = keys if change == "values" and keys.shape == values.shape else values
        return weights @ mixed, weights

    return wrong


ATTEND = Exercise(
    name="attend",
    title="Scores, weights, context",
    topic="self-attention and the Transformer",
    task="Attention in three steps: scores = Q K^T / sqrt(d_k), weights = softmax over the keys "
    "that the mask allows, context = weights V. Return (context, weights).",
    starter='''import torch


def attend(query, keys, values, mask):
    """query: [batch, target, d_k], keys: [batch, source, d_k], values: [batch, source, d_v],
    mask: bool [batch, source], True = may attend -> (context [batch, target, d_v],
    weights [batch, target, source])"""
    raise NotImplementedError
''',
    reference=attend,
    cases=_attend_cases,
    checks=(_padding_is_not_read,),
    wrong=(
        WrongVersion(_attend_without("scale"), "The scale is forgotten: divide by sqrt(d_k)."),
        WrongVersion(
            _attend_without("axis"),
            "Softmax over the wrong axis: the weights of each query over all keys must sum to 1.",
        ),
    ),
)


def causal_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Return the context of self-attention in which no position sees a later one."""
    mask = causal_mask(queries.shape[1])
    return masked_softmax(scaled_scores(queries, keys), mask.expand(len(queries), -1, -1)) @ values


def _future_does_not_leak(solution: Function) -> None:
    queries, keys, values = draw(10, (2, 5, 4), (2, 5, 4), (2, 5, 3))
    before = call(solution, queries, keys, values)
    for place in range(1, 5):
        later = [part.clone() for part in (queries, keys, values)]
        for part in later:
            part[:, place] += 2
        after = call(solution, *later)
        if not same(after[:, :place], before[:, :place]):
            raise MistakeError(
                f"The future leaks: what stands at position {place} changes the output of "
                "positions before it."
            )


CAUSAL_ATTENTION = Exercise(
    name="causal-attention",
    title="Masked self-attention",
    topic="self-attention and the Transformer",
    task="Self-attention of a decoder: scaled dot products, a softmax over this and all earlier "
    "positions, and the weighted sum of the values.",
    starter='''import torch


def causal_attention(queries, keys, values):
    """[batch, time, d_k], [batch, time, d_k], [batch, time, d_v] -> [batch, time, d_v]"""
    raise NotImplementedError
''',
    reference=causal_attention,
    cases=lambda: [(*draw(11, (2, 5, 4), (2, 5, 4), (2, 5, 3)),)],
    checks=(_future_does_not_leak,),
    wrong=(
        WrongVersion(
            lambda q, k, v: (torch.softmax(scaled_scores(q, k), -1) * causal_mask(q.shape[1])) @ v,
            "The mask is applied after the softmax: the weights of early positions no longer sum "
            "to 1, and they depend on how much the future got.",
        ),
        WrongVersion(
            lambda q, k, v: (
                torch.softmax((q @ k.mT).masked_fill(~causal_mask(q.shape[1]), NEVER), -1) @ v
            ),
            "The scale is forgotten: divide by sqrt(d_k).",
        ),
    ),
)


def multi_head(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, heads: int) -> Tensor:
    """Return multi-head self-attention: heads side by side, joined and projected."""
    batch, time, width = x.shape
    q, k, v = (
        (x @ w).view(batch, time, heads, width // heads).transpose(1, 2) for w in (w_q, w_k, w_v)
    )
    joined = (torch.softmax(scaled_scores(q, k), -1) @ v).transpose(1, 2)
    return joined.reshape(batch, time, width) @ w_o


def _heads_without(change: str) -> Function:
    def wrong(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, heads: int) -> Tensor:
        batch, time, width = x.shape
        part = width // heads
        if change == "view":
            q, k, v = ((x @ w).reshape(batch, heads, time, part) for w in (w_q, w_k, w_v))
        else:
            q, k, v = (
                (x @ w).view(batch, time, heads, part).transpose(1, 2) for w in (w_q, w_k, w_v)
            )
        scale = {"model": math.sqrt(width), "scale": 1.0}.get(change, math.sqrt(part))
        found = torch.softmax(q @ k.mT / scale, -1) @ v
        joined = (found if change in ("view", "join") else found.transpose(1, 2)).reshape(
            batch, time, width
        )
        return joined if change == "output" else joined @ w_o

    return wrong


MULTI_HEAD = Exercise(
    name="multi-head",
    title="Several heads",
    topic="self-attention and the Transformer",
    task="Split X W^Q, X W^K, X W^V into heads of width d / heads, attend in each, join the heads "
    "and multiply by W^O (Vaswani et al. 2017, section 3.2.2). Every head scales by its own width.",
    starter='''import torch


def multi_head(x, w_q, w_k, w_v, w_o, heads):
    """x: [batch, time, d], weights: [d, d], used as x @ w -> [batch, time, d]"""
    raise NotImplementedError
''',
    reference=multi_head,
    cases=lambda: [
        (*draw(12, (2, 4, 8), (8, 8), (8, 8), (8, 8), (8, 8)), 2),
        (*draw(13, (1, 3, 6), (6, 6), (6, 6), (6, 6), (6, 6)), 3),
    ],
    wrong=(
        WrongVersion(
            _heads_without("view"),
            "The heads mix positions: view as [batch, time, heads, width] first, then move the "
            "axis of heads before time. A direct view as [batch, heads, time, width] cuts time.",
        ),
        WrongVersion(
            _heads_without("join"),
            "Heads are joined in the wrong order: move the axis of heads back behind time before "
            "the reshape.",
        ),
        WrongVersion(
            _heads_without("model"), "Each head scales by the root of its own width d / heads."
        ),
        WrongVersion(_heads_without("scale"), "The scale is forgotten: divide by sqrt(d / heads)."),
        WrongVersion(_heads_without("output"), "W^O is missing: the heads are joined, not mixed."),
    ),
)


def causal_mask(length: int) -> Tensor:
    """Return [target, source]: True where the source is not later than the target."""
    return torch.ones(length, length, dtype=torch.bool).tril()


CAUSAL_MASK = Exercise(
    name="causal-mask",
    title="No look into the future",
    topic="self-attention and the Transformer",
    task="A boolean matrix [target, source] that lets position i attend to positions 0 to i. "
    "True = may attend.",
    starter='''import torch


def causal_mask(length):
    """-> bool [length, length], rows are targets; True = may attend."""
    raise NotImplementedError
''',
    reference=causal_mask,
    cases=lambda: [(1,), (2,), (5,)],
    wrong=(
        WrongVersion(
            lambda n: torch.ones(n, n, dtype=torch.bool).triu(),
            "The future leaks: the matrix is transposed, each position sees itself and what "
            "comes after it. Rows are targets.",
        ),
        WrongVersion(
            lambda n: torch.ones(n, n, dtype=torch.bool).tril(-1),
            "A position must see itself too: the diagonal is missing.",
        ),
        WrongVersion(
            lambda n: torch.ones(n, n, dtype=torch.bool).triu(1),
            "The future leaks: True means may attend, and here it marks what must be hidden.",
        ),
        WrongVersion(
            lambda n: torch.ones(n, n, dtype=torch.bool),
            "The future leaks: every position sees all others.",
        ),
        WrongVersion(
            lambda n: torch.ones(n, n, dtype=torch.bool).tril(1),
            "The future leaks by one: position i sees i + 1.",
        ),
    ),
)

EXERCISES = (ATTEND, CAUSAL_MASK, CAUSAL_ATTENTION, MULTI_HEAD)
