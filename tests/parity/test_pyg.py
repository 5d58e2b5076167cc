"""Graph layers against PyTorch Geometric's, with copied weights."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from regard.attention.edges import Edges
from regard.attention.graph import EDGE_SCORES, GraphAttention
from regard.models.graph_classifier import GraphConvolution

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pyg = pytest.importorskip("torch_geometric.nn")

NODES, FEATURES, HEADS, DIM = 40, 12, 4, 5


@pytest.fixture
def graph() -> tuple[torch.Tensor, torch.Tensor, Edges]:
    torch.manual_seed(0)
    pairs = torch.randint(0, NODES, (2, 160)).unique(dim=1)
    pairs = pairs[:, pairs[0] != pairs[1]]
    loops = torch.arange(NODES).repeat(2, 1)
    source, target = torch.cat([pairs, loops], 1)
    return (
        torch.randn(NODES, FEATURES),
        pairs,
        Edges.sort(source, target, sources=NODES, targets=NODES),
    )


def by_pair(index: torch.Tensor, weights: torch.Tensor) -> dict[tuple[int, int], list[float]]:
    rows = zip(index.t().tolist(), weights.tolist(), strict=True)
    return {(source, target): values for (source, target), values in rows}


def require_same(ours: Any, theirs: Any, features: torch.Tensor, pairs: Any, edges: Edges) -> None:
    context, weights = ours(features, edges, with_weights=True)
    wanted, (index, wanted_weights) = theirs(features, pairs, return_attention_weights=True)
    assert torch.allclose(context, wanted, atol=1e-5)
    found = by_pair(torch.stack([edges.source, edges.target]), weights)
    expected = by_pair(index, wanted_weights)
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair], abs=1e-5) for pair in expected)
    context.square().sum().backward()
    wanted.square().sum().backward()


@pytest.mark.parametrize("concatenate", [True, False])
def test_gat(graph: tuple[torch.Tensor, torch.Tensor, Edges], concatenate: bool) -> None:
    features, pairs, edges = graph
    theirs = pyg.GATConv(FEATURES, DIM, heads=HEADS, concat=concatenate)
    score = EDGE_SCORES["additive"](heads=HEADS, head_dim=DIM)
    ours = GraphAttention(input_dim=FEATURES, score=score, concatenate=concatenate)
    with torch.no_grad():
        torch.nn.init.normal_(theirs.bias)
        ours.project[0].weight.copy_(theirs.lin.weight.t())
        ours.score.source_readout.copy_(theirs.att_src[0])
        ours.score.target_readout.copy_(theirs.att_dst[0])
        ours.bias.copy_(theirs.bias)
    require_same(ours, theirs, features, pairs, edges)
    assert torch.allclose(ours.project[0].weight.grad, theirs.lin.weight.grad.t(), atol=1e-4)
    assert torch.allclose(ours.score.source_readout.grad, theirs.att_src.grad[0], atol=1e-4)


@pytest.mark.parametrize("concatenate", [True, False])
def test_gatv2(graph: tuple[torch.Tensor, torch.Tensor, Edges], concatenate: bool) -> None:
    features, pairs, edges = graph
    theirs = pyg.GATv2Conv(FEATURES, DIM, heads=HEADS, concat=concatenate)
    ours = GraphAttention(
        input_dim=FEATURES,
        score=EDGE_SCORES["dynamic"](heads=HEADS, head_dim=DIM),
        concatenate=concatenate,
        projection_bias=True,
    )
    with torch.no_grad():
        for mine, other in zip(ours.project, (theirs.lin_r, theirs.lin_l), strict=True):
            torch.nn.init.normal_(other.bias)
            mine.weight.copy_(other.weight.t())
            mine.bias.copy_(other.bias)
        ours.score.readout.copy_(theirs.att[0])
        ours.bias.copy_(theirs.bias)
    require_same(ours, theirs, features, pairs, edges)
    assert torch.allclose(ours.project[0].weight.grad, theirs.lin_r.weight.grad.t(), atol=1e-4)
    assert torch.allclose(ours.score.readout.grad, theirs.att.grad[0], atol=1e-4)


def test_gcn(graph: tuple[torch.Tensor, torch.Tensor, Edges]) -> None:
    features, pairs, edges = graph
    theirs = pyg.GCNConv(FEATURES, DIM)
    ours = GraphConvolution(input_dim=FEATURES, output_dim=DIM)
    with torch.no_grad():
        torch.nn.init.normal_(theirs.bias)
        ours.linear.weight.copy_(theirs.lin.weight.t())
        ours.bias.copy_(theirs.bias)
    found, wanted = ours(features, edges), theirs(features, pairs)
    assert torch.allclose(found, wanted, atol=1e-5)
    found.square().sum().backward()
    wanted.square().sum().backward()
    assert torch.allclose(ours.linear.weight.grad, theirs.lin.weight.grad.t(), atol=1e-4)
