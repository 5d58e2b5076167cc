"""Batches of nodes: all at once, or some with a sample of their neighbourhoods.

A sampled batch is a small graph of its own, so memory depends on the batch and not on the graph
(Hamilton et al. 2017, algorithm 2). Order and samples are functions of seed and position alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from regard.attention.edges import Edges
from regard.attention.graph import Features, GraphInput, SparseFeatures
from regard.base.shapes import Float, Int, Tensor
from regard.batching.order import BatchPosition, Epoch, endless

SELF_LOOP = 2  # the type of an edge from a node to itself


@dataclass(frozen=True, eq=False)
class NodeBatch:
    """A graph, the rows of it whose classes are asked for, and those classes."""

    graph: GraphInput
    rows: Int[Tensor, "chosen"]
    labels: Int[Tensor, "chosen"]

    @property
    def target_tokens(self) -> int:
        """How many classes are to be found."""
        return self.rows.shape[0]

    @property
    def padding_share(self) -> float:
        """Graphs need no padding."""
        return 0.0

    def split(self, count: int) -> list[NodeBatch]:
        """Return the nodes that are asked for in at most `count` parts, each with its graph."""
        parts = min(count, len(self.rows))
        return [
            NodeBatch(self.graph, self.rows[first::parts], self.labels[first::parts])
            for first in range(parts)
        ]


def iterate_nodes(
    everything: NodeBatch,
    *,
    batch_nodes: int | None,
    neighbours: int,
    hops: int,
    seed: int,
    start: BatchPosition,
) -> Iterator[tuple[BatchPosition, NodeBatch]]:
    """Yield batches of nodes without end: all at once, or `batch_nodes` with sampled neighbours."""
    if batch_nodes is None:
        return endless(lambda epoch: Epoch(1, lambda batch: everything), start=start)
    count = everything.target_tokens
    size = min(batch_nodes, count)

    def epoch_of(epoch: int) -> Epoch[NodeBatch]:
        shuffled = _shuffled(count, seed, epoch)

        def make(batch: int) -> NodeBatch:
            return sample_batch(
                everything,
                shuffled[batch * size : (batch + 1) * size],
                neighbours=neighbours,
                hops=hops,
                generator=_generator(seed, epoch, batch + 1),
            )

        return Epoch(-(-count // size), make)

    return endless(epoch_of, start=start)


def sample_batch(
    everything: NodeBatch,
    chosen: Int[Tensor, "chosen"],
    *,
    neighbours: int,
    hops: int,
    generator: torch.Generator,
) -> NodeBatch:
    """Return the graph of these rows with at most `neighbours` edges into a node at each hop."""
    graph, seeds = everything.graph, everything.rows[chosen]
    frontier, known, taken = seeds, seeds, []
    for _ in range(hops):
        edges = _sampled_edges(graph, frontier, neighbours=neighbours, generator=generator)
        taken.append(edges)
        reached = torch.unique(torch.cat([known, graph.edges.source[edges]]))
        frontier = reached[~torch.isin(reached, known)]
        known = reached
    # A node of the last hop has no sampled edges; it keeps its self-loop.
    own = _segments(graph.edges.starts, frontier)[0]
    taken.append(own[graph.edge_types[own] == SELF_LOOP])
    numbers = torch.unique(torch.cat(taken))
    return NodeBatch(
        subgraph(graph, nodes=known, edges=numbers),
        torch.searchsorted(known, seeds),
        everything.labels[chosen],
    )


def subgraph(
    graph: GraphInput, *, nodes: Int[Tensor, "nodes"], edges: Int[Tensor, "edges"]
) -> GraphInput:
    """Return these nodes (in rising order) with these edges among them, numbered anew."""
    count = nodes.shape[0]
    # Numbers keep their order, so the edges are still sorted by target and source.
    sorted_edges = Edges.sort(
        torch.searchsorted(nodes, graph.edges.source[edges]),
        torch.searchsorted(nodes, graph.edges.target[edges]),
        sources=count,
        targets=count,
    )
    return GraphInput(
        _rows(graph.features, nodes),
        sorted_edges,
        graph.edge_types[edges],
        None if graph.edge_vectors is None else graph.edge_vectors[edges],
        edges if graph.edge_numbers is None else graph.edge_numbers[edges],
    )


def _sampled_edges(
    graph: GraphInput, nodes: Tensor, *, neighbours: int, generator: torch.Generator
) -> Tensor:
    """Return the numbers of sampled edges that end in these nodes; self-loops are always kept."""
    edges, segment = _segments(graph.edges.starts, nodes)
    priority = torch.rand(edges.shape[0], generator=generator)
    priority[graph.edge_types[edges] == SELF_LOOP] = -1.0
    order = torch.argsort(priority)
    order = order[torch.argsort(segment[order], stable=True)]
    counts = torch.bincount(segment, minlength=nodes.shape[0])
    first = torch.repeat_interleave(counts.cumsum(0) - counts, counts)
    rank = torch.arange(edges.shape[0]) - first
    has_loop = torch.zeros(nodes.shape[0], dtype=torch.int64)
    has_loop[segment[graph.edge_types[edges] == SELF_LOOP]] = 1
    return edges[order[rank < neighbours + has_loop[segment[order]]]]


def _segments(starts: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the entries of these rows of a CSR structure, and which of the rows each is in."""
    counts = starts[rows + 1] - starts[rows]
    segment = torch.repeat_interleave(torch.arange(rows.shape[0]), counts)
    within = torch.arange(segment.shape[0]) - (counts.cumsum(0) - counts)[segment]
    return starts[rows][segment] + within, segment


def _rows(
    features: Features, nodes: Int[Tensor, "chosen"]
) -> Float[Tensor, "chosen features"] | SparseFeatures:
    if isinstance(features, Tensor):
        return features.index_select(0, nodes)
    entries, segment = _segments(features.entries.starts, nodes)
    kept = Edges.sort(
        features.entries.source[entries],
        segment,
        sources=features.entries.sources,
        targets=nodes.shape[0],
    )
    return SparseFeatures(kept, features.values[entries])


def _shuffled(count: int, seed: int, epoch: int) -> Tensor:
    return torch.randperm(count, generator=_generator(seed, epoch, 0))


def _generator(seed: int, epoch: int, number: int) -> torch.Generator:
    mixed = hash((seed, epoch, number)) & (2**63 - 1)  # whole numbers hash alike in every process
    return torch.Generator().manual_seed(mixed)
