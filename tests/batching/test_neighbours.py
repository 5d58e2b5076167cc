from __future__ import annotations

from itertools import islice

import pytest
import torch

from regard.attention.edges import Edges
from regard.attention.graph import GraphInput, SparseFeatures, dense
from regard.batching.neighbours import NodeBatch, iterate_nodes, sample_batch
from regard.batching.order import BatchPosition

NODES, FEATURES = 30, 6


def everything(*, sparse: bool = True) -> NodeBatch:
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randint(0, NODES, (2, 200), generator=generator)
    pairs = torch.unique(pairs[:, pairs[0] != pairs[1]], dim=1)
    loops = torch.arange(NODES).repeat(2, 1)
    keys = torch.cat([pairs, loops], 1)
    edges = Edges.sort(keys[0], keys[1], sources=NODES, targets=NODES)
    types = torch.where(edges.source == edges.target, 2, 0)
    matrix = torch.rand(NODES, FEATURES, generator=generator)
    matrix = matrix * (matrix > 0.5)
    rows, columns = matrix.nonzero(as_tuple=True)
    entries = Edges.sort(columns, rows, sources=FEATURES, targets=NODES)
    features = SparseFeatures(entries, matrix[entries.target, entries.source])
    nodes = torch.arange(0, NODES, 2)
    graph = GraphInput(features if sparse else matrix, edges, types)
    return NodeBatch(graph, nodes, nodes % 3)


def sampled(batch: NodeBatch, chosen: torch.Tensor, neighbours: int, hops: int = 2) -> NodeBatch:
    generator = torch.Generator().manual_seed(1)
    return sample_batch(batch, chosen, neighbours=neighbours, hops=hops, generator=generator)


@pytest.mark.parametrize("sparse", [True, False])
def test_with_all_neighbours_nothing_within_reach_is_lost(sparse: bool) -> None:
    whole = everything(sparse=sparse)
    batch = sampled(whole, torch.tensor([4, 1]), neighbours=NODES)
    seeds = whole.rows[[4, 1]]
    assert batch.labels.tolist() == (seeds % 3).tolist()
    wanted = dense(whole.graph.features)[seeds]
    assert torch.equal(dense(batch.graph.features)[batch.rows], wanted)
    before, after = whole.graph.edges.starts.diff(), batch.graph.edges.starts.diff()
    assert after[batch.rows].tolist() == before[seeds].tolist()
    loops = batch.graph.edges.source == batch.graph.edges.target
    assert torch.equal(loops, batch.graph.edge_types == 2)
    assert int(loops.sum()) == batch.graph.edges.targets


def test_no_node_hears_from_more_neighbours_than_asked_for() -> None:
    batch = sampled(everything(), torch.arange(15), neighbours=2)
    counts = batch.graph.edges.starts.diff()
    assert counts.max() == 3  # two, and itself
    assert batch.target_tokens == 15
    assert batch.padding_share == 0.0


def test_batches_cover_each_node_once_an_epoch_and_resume_exactly() -> None:
    whole = everything()
    options = {"batch_nodes": 4, "neighbours": 2, "hops": 1, "seed": 5}
    steps = list(islice(iterate_nodes(whole, start=BatchPosition(), **options), 8))  # type: ignore[arg-type]
    assert [batch.target_tokens for _, batch in steps] == [4, 4, 4, 3] * 2
    assert steps[3][0] == BatchPosition(1, 0)
    resumed = iterate_nodes(whole, start=steps[4][0], **options)  # type: ignore[arg-type]
    _, again = next(resumed)
    assert torch.equal(again.graph.edges.source, steps[5][1].graph.edges.source)
    assert again.labels.tolist() == steps[5][1].labels.tolist()


def test_without_a_batch_size_every_batch_is_everything() -> None:
    whole = everything()
    steps = islice(
        iterate_nodes(
            whole, batch_nodes=None, neighbours=1, hops=1, seed=1, start=BatchPosition(2, 0)
        ),
        2,
    )
    assert [(position.epoch, batch is whole) for position, batch in steps] == [(3, True), (4, True)]
