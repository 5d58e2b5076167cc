from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from regard.attention.edges import Edges
from regard.attention.graph import (
    EDGE_SCORES,
    EdgeScore,
    GraphAttention,
    NodeLinear,
    SparseFeatures,
    dense,
    drop_features,
)

NODES, FEATURES, HEADS, DIM = 9, 5, 2, 4


def ring() -> Edges:
    nodes = torch.arange(NODES)
    source = torch.cat([nodes, nodes, nodes])
    target = torch.cat([nodes, (nodes + 1) % NODES, (nodes - 1) % NODES])
    return Edges.sort(source, target, sources=NODES, targets=NODES)


def attention(score: str = "additive", **options: Any) -> GraphAttention:
    made = EDGE_SCORES[score](heads=HEADS, head_dim=DIM)
    return GraphAttention(input_dim=FEATURES, score=made, **options)


def complete(nodes: int) -> Edges:
    source, target = torch.arange(nodes).repeat(nodes), torch.arange(nodes).repeat_interleave(nodes)
    return Edges.sort(source, target, sources=nodes, targets=nodes)


def sparse_and_dense() -> tuple[SparseFeatures, torch.Tensor]:
    matrix = torch.randn(NODES, FEATURES) * (torch.rand(NODES, FEATURES) < 0.4)
    rows, columns = matrix.nonzero(as_tuple=True)
    entries = Edges.sort(columns, rows, sources=FEATURES, targets=NODES)
    return SparseFeatures(entries, matrix[entries.target, entries.source]), matrix


def gaussian(score: Any, m: int, degrees: Tensor) -> Tensor:
    """Return log w_m(u), with u = tanh(A d^(-1/2) + b) (Monti et al. 2017, section 5.2)."""
    u = torch.tanh(score.coordinates.weight @ degrees**-0.5 + score.coordinates.bias)
    return -0.5 * ((u - score.means[m]).square() / score.log_widths[m].exp().square()).sum()


# A new score needs one row here: its formula for the head `m` of an edge, from the vectors of the
# node that asks and of its neighbour, as the paper has it after the projections.
FORMULAS: dict[str, Callable[[Any, int, Tensor, Tensor], Tensor]] = {
    "additive": lambda score, m, q, k: leaky_relu(
        score.target_readout[m] @ q + score.source_readout[m] @ k + score.bias[m], 0.2
    ),
    "dynamic": lambda score, m, q, k: score.readout[m] @ leaky_relu(q + k, 0.2),
    "scaled-dot": lambda score, m, q, k: q @ k / DIM**0.5,
    "distance": lambda score, m, q, k: -(q - k).square().sum(),
    "gaussian": lambda score, m, q, k: gaussian(score, m, torch.full((2,), ring().count / NODES)),
}


def test_every_score_has_a_formula() -> None:
    assert FORMULAS.keys() == EDGE_SCORES.keys()


@pytest.mark.parametrize("name", EDGE_SCORES)
def test_a_score_equals_its_formula(name: str) -> None:
    torch.manual_seed(0)
    score, edges = EDGE_SCORES[name](heads=HEADS, head_dim=DIM), ring()
    queries, keys = torch.randn(2, NODES, HEADS, DIM)
    with torch.no_grad():
        found = score(queries, keys, edges)
        for edge, (i, j) in enumerate(zip(edges.target, edges.source, strict=True)):
            for m in range(HEADS):
                expected = FORMULAS[name](score, m, queries[i, m], keys[j, m])
                torch.testing.assert_close(found[m, edge], expected)


@pytest.mark.parametrize("score", EDGE_SCORES)
@pytest.mark.parametrize("concatenate", [True, False])
def test_every_score_gives_contexts_and_weights_by_edge(score: str, concatenate: bool) -> None:
    torch.manual_seed(0)
    layer = attention(score=score, concatenate=concatenate)
    edges = ring()
    context, weights = layer(torch.randn(NODES, FEATURES), edges, with_weights=True)
    assert context.shape == (NODES, HEADS * DIM if concatenate else DIM)
    assert weights.shape == (edges.count, HEADS)
    sums = torch.zeros(NODES, HEADS).index_add_(0, edges.target, weights)
    assert torch.allclose(sums, torch.ones(NODES, HEADS), atol=1e-6)


def uneven() -> Edges:
    """A ring in which all nodes hear from the first one too: degrees differ."""
    edges = ring()
    source = torch.cat([edges.source, torch.zeros(2, dtype=torch.long)])
    target = torch.cat([edges.target, torch.tensor([2, 3])])
    return Edges.sort(source, target, sources=NODES, targets=NODES)


def test_a_gaussian_kernel_sees_degrees_alone() -> None:
    torch.manual_seed(0)
    score, edges = EDGE_SCORES["gaussian"](heads=HEADS, head_dim=DIM), uneven()
    queries, keys = torch.randn(2, NODES, HEADS, DIM)
    found = score(queries, keys, edges)
    degrees = torch.bincount(edges.target, minlength=NODES).float()
    for edge, (i, j) in enumerate(zip(edges.target, edges.source, strict=True)):
        for m in range(HEADS):
            expected = gaussian(score, m, torch.stack([degrees[j], degrees[i]]))
            torch.testing.assert_close(found[m, edge], expected)


@pytest.mark.parametrize("score", EDGE_SCORES)
def test_every_parameter_of_every_score_learns(score: str) -> None:
    torch.manual_seed(0)
    layer = attention(score=score, residual=True)
    layer(torch.randn(NODES, FEATURES), uneven()).context.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())


def test_weights_come_only_on_request() -> None:
    layer = attention()
    assert layer(torch.randn(NODES, FEATURES), ring()).weights is None


@pytest.mark.parametrize("score", EDGE_SCORES)
def test_a_node_hears_from_its_neighbours_only(score: str) -> None:
    torch.manual_seed(0)
    layer = attention(score=score)
    features = torch.randn(NODES, FEATURES)
    before = layer(features, ring()).context
    features[4] += 1
    changed = (layer(features, ring()).context != before).any(1)
    assert changed.nonzero().flatten().tolist() == [3, 4, 5]


def test_dropout_acts_in_training_only() -> None:
    torch.manual_seed(0)
    layer = attention(feature_dropout=0.5, attention_dropout=0.5)
    features, edges = torch.randn(NODES, FEATURES), ring()
    assert not torch.equal(layer(features, edges).context, layer(features, edges).context)
    layer.eval()
    assert torch.equal(layer(features, edges).context, layer(features, edges).context)


@pytest.mark.parametrize("score", EDGE_SCORES)
def test_sparse_features_give_what_dense_ones_give(score: str) -> None:
    torch.manual_seed(0)
    layer = attention(score=score, residual=True)
    sparse, full = sparse_and_dense()
    assert sparse.shape == (NODES, FEATURES)
    assert torch.equal(dense(sparse), full)
    assert dense(full) is full
    from_sparse, from_dense = layer(sparse, ring()).context, layer(full, ring()).context
    assert torch.allclose(from_sparse, from_dense, atol=1e-6)


def test_dropout_of_sparse_features_leaves_zeros_zero() -> None:
    torch.manual_seed(0)
    sparse, full = sparse_and_dense()
    dropped = dense(drop_features(sparse, 0.5))
    assert torch.equal(dropped[full == 0], torch.zeros(int((full == 0).sum())))
    assert drop_features(sparse, 0.0) is sparse
    assert ((dropped == 0) | torch.isclose(dropped, 2 * full)).all()


def test_a_linear_map_without_bias_has_none() -> None:
    assert NodeLinear(3, 2, bias=False).bias is None
    assert NodeLinear(3, 2)(torch.zeros(1, 3)).tolist() == [[0.0, 0.0]]


def test_a_score_without_formula_says_so() -> None:
    with pytest.raises(TypeError, match="EdgeScore gives no formula"):
        EdgeScore(heads=1, head_dim=1)(torch.zeros(2, 1, 1), torch.zeros(2, 1, 1), complete(2))


def test_self_attention_is_graph_attention_on_the_complete_graph() -> None:
    """A Transformer layer's self-attention over 11 words, and the graph in which all are linked."""
    torch.manual_seed(0)
    words, model_dim, heads = 11, 16, 4
    transformer = nn.MultiheadAttention(model_dim, heads, batch_first=True)
    nn.init.normal_(transformer.in_proj_bias)
    score = EDGE_SCORES["scaled-dot"](heads=heads, head_dim=model_dim // heads)
    graph = GraphAttention(input_dim=model_dim, score=score, projection_bias=True)
    with torch.no_grad():
        parts = zip(
            graph.project,
            transformer.in_proj_weight.chunk(3),
            transformer.in_proj_bias.chunk(3),
            strict=True,
        )
        for projection, weight, bias in parts:
            projection.weight.copy_(weight.t())
            projection.bias.copy_(bias)
    sentence = torch.randn(words, model_dim)
    wanted, wanted_weights = transformer(
        sentence[None], sentence[None], sentence[None], average_attn_weights=False
    )
    context, weights = graph(sentence, complete(words), with_weights=True)
    assert torch.allclose(transformer.out_proj(context), wanted[0], atol=1e-5)
    by_pair = weights.view(words, words, heads).permute(2, 0, 1)  # [heads, target, source]
    assert torch.allclose(by_pair, wanted_weights[0], atol=1e-5)


def test_masked_self_attention_is_graph_attention_without_edges_from_the_future() -> None:
    torch.manual_seed(0)
    words, model_dim, heads = 7, 8, 2
    score = EDGE_SCORES["scaled-dot"](heads=heads, head_dim=4)
    graph = GraphAttention(input_dim=model_dim, score=score)
    edges = complete(words)
    past = edges.source <= edges.target
    causal = Edges.sort(edges.source[past], edges.target[past], sources=words, targets=words)
    sentence = torch.randn(words, model_dim)
    queries, keys, values = (
        project(sentence).view(words, heads, 4).transpose(0, 1) for project in graph.project
    )
    wanted = nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    found = graph(sentence, causal).context
    assert torch.allclose(found, wanted.transpose(0, 1).flatten(1), atol=1e-5)
