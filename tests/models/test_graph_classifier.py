from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from regard.attention import graph as graphs
from regard.attention.edges import Edges
from regard.attention.graph import GraphInput
from regard.base.errors import SettingsError
from regard.batching.neighbours import subgraph
from regard.models.graph_classifier import (
    EdgeVectors,
    MessagePassing,
    build_graph_classifier,
    symmetric_weights,
)
from regard.models.inspection import parameter_count
from regard.settings.models import GraphModelSettings


def ring(nodes: int = 6, features: int = 5) -> GraphInput:
    torch.manual_seed(0)
    own = torch.arange(nodes)
    source, target = torch.cat([own, own]), torch.cat([own, (own + 1) % nodes])
    edges = Edges.sort(source, target, sources=nodes, targets=nodes)
    types = torch.where(edges.source == edges.target, 2, 0)
    return GraphInput(torch.randn(nodes, features), edges, types)


CASES: dict[str, tuple[dict[str, Any], int]] = {
    "attention": ({"heads": 2, "head_dim": 3}, 6),
    "dynamic attention": ({"heads": 2, "head_dim": 3, "score": "dynamic"}, 6),
    "dot attention, residual": (
        {"heads": 2, "head_dim": 3, "score": "scaled-dot", "residual": True},
        6,
    ),
    "vertex attention": ({"heads": 2, "head_dim": 3, "score": "distance"}, 6),
    "averaged output heads": ({"heads": 2, "head_dim": 3, "output_heads": 4}, 6),
    "convolution": ({"layer": "convolution", "hidden": 4}, 4),
    "messages": ({"layer": "messages", "hidden": 4}, 4),
    "three layers": ({"heads": 1, "head_dim": 2, "layers": 3}, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_every_model_gives_a_class_to_every_node(name: str) -> None:
    changes, width = CASES[name]
    settings = GraphModelSettings(**changes)
    model = build_graph_classifier(settings, features=5, classes=3).eval()
    graph = ring()
    output = model(graph, with_weights=True)
    assert output.logits.shape == (6, 3)
    assert output.hidden.shape == (6, width)
    attends = settings.layer == "attention"
    assert len(output.attention) == (settings.layers if attends else 0)
    output.logits.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("most", [1, 3, 7])
def test_neighbourhoods_in_blocks_give_the_same(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, _ = CASES[name]
    model = build_graph_classifier(GraphModelSettings(**changes), features=5, classes=3).eval()
    graph = ring(9)
    whole = model(graph).logits
    monkeypatch.setattr(graphs, "EDGES_AT_ONCE", most)
    with torch.no_grad():
        assert torch.allclose(model(graph).logits, whole, atol=1e-6)
    blocks = list(graphs.by_targets(graph.edges))
    assert len(blocks) > 1
    assert torch.equal(torch.cat([one.source for _, one in blocks]), graph.edges.source)
    ends = [one.target + rows.start for rows, one in blocks]
    assert torch.equal(torch.cat(ends), graph.edges.target)
    assert [rows.start for rows, _ in blocks[1:]] == [rows.stop for rows, _ in blocks[:-1]]


def test_one_layer_has_no_hidden_features() -> None:
    model = build_graph_classifier(
        GraphModelSettings(layers=1),  # type: ignore[call-arg]
        features=5,
        classes=3,
    )
    output = model(ring())
    assert output.hidden is None
    assert output.attention == ()


def test_the_model_of_the_paper_has_its_size() -> None:
    settings = GraphModelSettings()  # type: ignore[call-arg]
    model = build_graph_classifier(settings, features=1433, classes=7)
    # W, a and the bias of each layer; one bias a head inside the score is the authors' addition.
    hidden, output = 1433 * 64 + 2 * 64 + 64 + 8, 64 * 7 + 2 * 7 + 7 + 1
    assert parameter_count(model) == hidden + output


def test_an_unknown_score_is_refused() -> None:
    settings = GraphModelSettings(score="aditive")  # type: ignore[call-arg]
    with pytest.raises(SettingsError, match="Did you mean 'additive'"):
        build_graph_classifier(settings, features=5, classes=3)


def test_messages_know_the_type_of_their_edge() -> None:
    graph = ring()
    layer = MessagePassing(input_dim=5, output_dim=4, of_edges=EdgeVectors())
    other = replace(graph, edge_types=torch.ones_like(graph.edge_types))
    assert not torch.allclose(layer(graph), layer(other))


def test_the_weights_of_a_convolution_depend_on_the_degrees() -> None:
    edges = Edges.sort(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 1]), sources=3, targets=3)
    assert symmetric_weights(edges).tolist() == pytest.approx([1.0, 0.5**0.5, 0.5, 1.0])


def with_vectors(width: int = 2) -> GraphInput:
    graph = ring()
    return replace(graph, edge_vectors=torch.randn(graph.edges.count, width))


@pytest.mark.parametrize("kind", ["learned", "given"])
def test_each_edge_has_a_vector(kind: str) -> None:
    """m_ij = ReLU(W h_j + e_ij), with e_ij of the edge itself."""
    graph = with_vectors()
    count = graph.edges.count if kind == "learned" else 2
    layer = MessagePassing(input_dim=5, output_dim=4, of_edges=EdgeVectors(kind, count))
    found = layer(graph)
    table = layer.edge_embedding.weight
    e = table if kind == "learned" else graph.edge_vectors @ table
    mapped = graph.features @ layer.message.weight
    for i in range(6):
        own = (graph.edges.target == i).nonzero()[:, 0]
        messages = [torch.relu(mapped[graph.edges.source[n]] + e[n]) for n in own]
        expected = graph.features[i] @ layer.self_update.weight + layer.self_update.bias
        expected = expected + torch.stack(messages).mean(0) @ layer.message_update.weight
        torch.testing.assert_close(found[i], expected)
    found.sum().backward()
    assert table.grad is not None
    assert table.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", ["learned", "given"])
def test_a_part_of_a_graph_keeps_the_vectors_of_its_edges(kind: str) -> None:
    graph = with_vectors()
    count = graph.edges.count if kind == "learned" else 2
    layer = MessagePassing(input_dim=5, output_dim=4, of_edges=EdgeVectors(kind, count))
    nodes = torch.tensor([1, 2, 3])
    ends = zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True)
    edges = torch.tensor([n for n, both in enumerate(ends) if {*both} <= {1, 2, 3}])
    part = subgraph(graph, nodes=nodes, edges=edges)
    torch.testing.assert_close(layer(part)[1:], layer(graph)[2:4])


def test_vectors_of_the_wrong_count_are_refused() -> None:
    messages = {"input_dim": 5, "output_dim": 4}
    with pytest.raises(
        SettingsError, match="needs vectors of 3 numbers for the edges; this graph has 2"
    ):
        MessagePassing(**messages, of_edges=EdgeVectors("given", 3))(with_vectors())
    with pytest.raises(SettingsError, match="this graph has none"):
        MessagePassing(**messages, of_edges=EdgeVectors("given", 3))(ring())
    with pytest.raises(SettingsError, match="has vectors for 5 edges, but this graph has 12"):
        MessagePassing(**messages, of_edges=EdgeVectors("learned", 5))(ring())
    settings = GraphModelSettings(layer="messages", edge_vectors="learned")
    with pytest.raises(SettingsError, match="needs the graph: it has vectors for its edges"):
        build_graph_classifier(settings, features=5, classes=3)
    with pytest.raises(ValidationError, match='edge_vectors = "given" needs layer = "messages"'):
        GraphModelSettings(edge_vectors="given")
