"""From a graph to tensors: sorted as the sums over neighbourhoods need it, whatever the file."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.attention.graph import dense
from regard.corpora.graph import FeatureMatrix, Graph
from regard.tasks.node_classification.data import graph_input
from regard.tasks.node_classification.settings import GraphDataSettings


@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize("undirected", [True, False])
def test_features_and_edges_in_any_order(sort: bool, undirected: bool) -> None:
    random = np.random.default_rng(3)
    nodes, width = 20, 50
    starts, columns = [0], []
    for _ in range(nodes):
        own = random.choice(width, random.integers(0, 6), replace=False)
        columns += sorted(own) if sort else list(own)
        starts.append(len(columns))
    values = random.random(len(columns)).astype(np.float32)
    matrix = FeatureMatrix(np.array(starts), np.array(columns), values, width)
    pairs = random.integers(0, nodes, (2, 80))
    graph = Graph(matrix, np.zeros(nodes, np.int64), pairs, classes=("0",))
    settings = GraphDataSettings(undirected=undirected, normalise=False)  # type: ignore[call-arg]
    found = graph_input(graph, settings)

    full = np.zeros((nodes, width), np.float32)
    full[matrix.rows, matrix.columns] = values
    assert np.array_equal(dense(found.features).numpy(), full)
    reached = np.eye(nodes, dtype=bool)  # [source, target]
    reached[pairs[0], pairs[1]] = True
    if undirected:
        reached |= reached.T
    edges = found.edges
    assert sorted(zip(edges.target.tolist(), edges.source.tolist(), strict=True)) == [
        (target, source)
        for source, target in sorted(np.argwhere(reached).tolist(), key=lambda e: e[::-1])
    ]
    assert torch.equal(edges.starts.diff(), torch.from_numpy(reached.sum(0)))
    given = (edges.source != edges.target) & (found.edge_types == 0)
    expected = {(int(a), int(b)) for a, b in pairs.T if a != b}
    ends = zip(edges.source[given].tolist(), edges.target[given].tolist(), strict=True)
    assert set(ends) == expected
