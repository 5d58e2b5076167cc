from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention import edges as kernels
from regard.attention.edges import (
    Edges,
    additive_scores,
    attend_edges,
    dot_scores,
    dynamic_scores,
    neighbour_sum,
)
from regard.compute.dropout import drop, keep_mask

SOURCES, TARGETS, COUNT, HEADS, DIM = 7, 6, 23, 3, 4


def random_edges(seed: int = 0) -> Edges:
    generator = torch.Generator().manual_seed(seed)
    return Edges.sort(
        torch.randint(0, SOURCES, (COUNT,), generator=generator),
        torch.randint(0, TARGETS - 1, (COUNT,), generator=generator),  # the last node is alone
        sources=SOURCES,
        targets=TARGETS,
    )


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def dense_attention(scores: Tensor, values: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
    """The same by loops over the nodes: what the fast kernels must give."""
    weights, context = torch.zeros_like(scores), values.new_zeros(edges.targets, *values.shape[1:])
    for node in range(edges.targets):
        own = edges.target == node
        weights[:, own] = torch.softmax(scores[:, own], dim=1)
        context[node] = torch.einsum("he,ehd->hd", weights[:, own], values[edges.source[own]])
    return context, weights


@pytest.fixture(params=["all heads at once", "head by head, in small chunks"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "all heads at once":
        monkeypatch.setattr(kernels, "BLOCK", 1)
        monkeypatch.setattr(kernels, "CHUNK", 5)
    return str(request.param)


def dropped_out(scores: Tensor, values: Tensor) -> Tensor:
    torch.manual_seed(3)
    return attend_edges(scores, values, edges=random_edges(), dropout=0.5)[0]


GRADIENTS: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "neighbour sum": (
        lambda w, v: neighbour_sum(w, v, edges=random_edges()),
        [(HEADS, COUNT), (SOURCES, HEADS, DIM)],
    ),
    "additive": (
        lambda t, s: additive_scores(t, s, edges=random_edges(), slope=0.2),
        [(TARGETS, HEADS), (SOURCES, HEADS)],
    ),
    "dot": (
        lambda q, k: dot_scores(q, k, edges=random_edges()),
        [(TARGETS, HEADS, DIM), (SOURCES, HEADS, DIM)],
    ),
    "dynamic": (
        lambda q, k, a: dynamic_scores(q, k, a, edges=random_edges(), slope=0.2),
        [(TARGETS, HEADS, DIM), (SOURCES, HEADS, DIM), (HEADS, DIM)],
    ),
    "attention": (
        lambda e, v: attend_edges(e, v, edges=random_edges())[0],
        [(HEADS, COUNT), (SOURCES, HEADS, DIM)],
    ),
    "attention with dropout": (dropped_out, [(HEADS, COUNT), (SOURCES, HEADS, DIM)]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_finite_differences(name: str, block: str) -> None:
    torch.manual_seed(1)
    function, shapes = GRADIENTS[name]
    assert torch.autograd.gradcheck(function, [normal(*shape) for shape in shapes])


def test_edges_are_sorted_by_target_and_then_source() -> None:
    edges = Edges.sort(torch.tensor([2, 0, 1]), torch.tensor([1, 1, 0]), sources=3, targets=3)
    assert edges.source.tolist() == [1, 0, 2]
    assert edges.target.tolist() == [0, 1, 1]
    assert edges.starts.tolist() == [0, 1, 3, 3]


def test_reversed_edges_are_the_same_edges() -> None:
    edges = random_edges()
    back = edges.reversed
    assert torch.equal(back.source, edges.target[edges.by_source])
    assert torch.equal(back.target, edges.source[edges.by_source])
    assert (back.sources, back.targets) == (TARGETS, SOURCES)


def test_copies_stand_side_by_side() -> None:
    twice = Edges.sort(torch.tensor([1, 0]), torch.tensor([0, 1]), sources=2, targets=2).copies(2)
    assert twice.source.tolist() == [1, 0, 3, 2]
    assert twice.target.tolist() == [0, 1, 2, 3]
    assert twice.starts.tolist() == [0, 1, 2, 3, 4]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**16), st.sampled_from([0.1, 1.0, 100.0]))
def test_attention_equals_the_loop_over_nodes(seed: int, scale: float) -> None:
    torch.manual_seed(seed)
    edges = random_edges(seed)
    scores, values = scale * torch.randn(HEADS, COUNT), torch.randn(SOURCES, HEADS, DIM)
    context, weights = attend_edges(scores, values, edges=edges)
    wanted_context, wanted_weights = dense_attention(scores, values, edges)
    assert torch.allclose(weights, wanted_weights, atol=1e-6)
    assert torch.allclose(context, wanted_context, atol=1e-5)
    sums = torch.zeros(HEADS, TARGETS).index_add_(1, edges.target, weights)
    assert torch.allclose(sums[:, edges.starts.diff() > 0], torch.tensor(1.0), atol=1e-5)


def test_scores_far_apart_neither_overflow_nor_vanish() -> None:
    edges = Edges.sort(torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]), sources=2, targets=2)
    scores = torch.tensor([[1e4, 1e4, -1e4, -1e4]])
    _, weights = attend_edges(scores, torch.ones(2, 1, 1), edges=edges)
    assert weights.tolist() == [[0.5, 0.5, 0.5, 0.5]]


def test_a_node_without_edges_gets_zeros() -> None:
    context, _ = attend_edges(
        torch.zeros(HEADS, COUNT), torch.ones(SOURCES, HEADS, DIM), edges=random_edges()
    )
    assert torch.equal(context[-1], torch.zeros(HEADS, DIM))


def test_a_graph_without_edges_gives_zeros() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    edges = Edges.sort(none, none, sources=3, targets=3)
    values = torch.ones(3, 2, 4, requires_grad=True)
    terms = torch.ones(3, 2, requires_grad=True)
    scores = additive_scores(terms, terms, edges=edges, slope=0.2)
    context, _ = attend_edges(scores, values, edges=edges)
    context.sum().backward()
    assert torch.equal(context, torch.zeros(3, 2, 4))


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.6])
def test_dropout_keeps_its_share_and_the_mean(dropout: float) -> None:
    torch.manual_seed(0)
    assert keep_mask(torch.empty(1_000, 301), dropout).float().mean() == pytest.approx(
        1 - dropout, abs=0.005
    )
    assert drop(torch.ones(300_000), dropout).mean() == pytest.approx(1.0, abs=0.01)


def test_dropout_follows_the_seed() -> None:
    torch.manual_seed(7)
    first = keep_mask(torch.empty(100), 0.5)
    torch.manual_seed(7)
    assert torch.equal(first, keep_mask(torch.empty(100), 0.5))


def test_no_gradient_is_computed_that_nobody_asked_for() -> None:
    values = torch.ones(SOURCES, 1, DIM, requires_grad=True)
    neighbour_sum(torch.ones(1, COUNT), values, edges=random_edges()).sum().backward()
    assert values.grad is not None
    assert values.grad[:, 0, 0].tolist() == random_edges().reversed.starts.diff().tolist()
