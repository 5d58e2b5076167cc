"""Edges sorted by target, and the sums over them that attention on a graph is made of.

No step holds a nodes x nodes matrix or one vector for every edge: memory grows with
edges x heads. Each sum is one call of `embedding_bag`, which reads the values in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F

from regard.base.shapes import Float, Int, Tensor
from regard.compute.device import on_host
from regard.compute.dropout import keep_mask

# Numbers in one pass: enough to hide the cost of a call, few enough to stay in the cache.
BLOCK = 1 << 18
# Edges whose vectors are gathered at once where a score needs both ends.
CHUNK = 1 << 11
# The same for other devices, which want few large steps.
LARGE_BLOCK, LARGE_CHUNK = 1 << 24, 1 << 20


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges from sources to targets, sorted by target and then by source.

    `starts[i]` to `starts[i + 1]` are the edges that end in node i: its neighbourhood. Sources and
    targets are the same nodes in a graph; in a feature matrix they are columns and rows.
    """

    source: Int[Tensor, "edges"]
    target: Int[Tensor, "edges"]
    starts: Int[Tensor, "boundaries"]
    sources: int
    whole: tuple[Edges, slice] | None = None
    """The edges that these are a part of, and where they are there."""

    @classmethod
    def sort(
        cls,
        source: Int[Tensor, "edges"],
        target: Int[Tensor, "edges"],
        *,
        sources: int,
        targets: int,
    ) -> Edges:
        """Return edges given in any order; duplicates are kept."""
        order = torch.argsort(target * max(sources, 1) + source)
        return cls(
            source[order].contiguous(),
            target[order].contiguous(),
            _starts(target, targets),
            sources,
        )

    @property
    def count(self) -> int:
        """Return the number of edges."""
        return self.source.shape[0]

    @property
    def targets(self) -> int:
        """Return the number of nodes that edges may end in."""
        return self.starts.shape[0] - 1

    @cached_property
    def by_source(self) -> Int[Tensor, "edges"]:
        """The numbers of the edges in the order of their sources."""
        return torch.argsort(self.source, stable=True)

    @cached_property
    def reversed(self) -> Edges:
        """The same edges from target to source; edge k of these is edge `by_source[k]` of ours."""
        order = self.by_source
        starts = _starts(self.source, self.sources)
        return Edges(self.target[order], self.source[order], starts, self.targets)

    def copies(self, count: int) -> Edges:
        """Return `count` disjoint copies: several heads on a graph are one head on its copies."""
        if count == 1:
            return self
        if count not in self._copies:
            self._copies[count] = self._copied(count)
        return self._copies[count]

    def blocks(self, heads: int) -> list[slice]:
        """Return the heads in blocks that are worked on together."""
        most = BLOCK if on_host(self.source) else LARGE_BLOCK
        size = max(1, min(heads, most // max(1, self.count)))
        return [slice(first, min(first + size, heads)) for first in range(0, heads, size)]

    @cached_property
    def _copies(self) -> dict[int, Edges]:
        return {}

    def _copied(self, count: int) -> Edges:
        copy = torch.arange(count, device=self.source.device)[:, None]
        end = self.starts.new_full((1,), count * self.count)
        return Edges(
            (self.source + copy * self.sources).flatten(),
            (self.target + copy * self.targets).flatten(),
            torch.cat([(self.starts[:-1] + copy * self.count).flatten(), end]),
            count * self.sources,
        )


def neighbour_sum(
    weights: Float[Tensor, "heads edges"],
    values: Float[Tensor, "sources heads head_dim"],
    *,
    edges: Edges,
) -> Float[Tensor, "targets heads head_dim"]:
    """Return c_i = sum_j w_ij v_j over the edges that end in i; a node without any gets zeros."""
    result: Tensor = _NeighbourSum.apply(weights, values, edges)  # type: ignore[no-untyped-call]
    return result


def additive_scores(
    target_term: Float[Tensor, "targets heads"],
    source_term: Float[Tensor, "sources heads"],
    *,
    edges: Edges,
    slope: float,
) -> Float[Tensor, "heads edges"]:
    """Return e_ij = LeakyReLU(t_i + s_j) for every edge from j to i."""
    result: Tensor = _AdditiveScores.apply(  # type: ignore[no-untyped-call]
        target_term, source_term, edges, slope
    )
    return result


def dot_scores(
    queries: Float[Tensor, "targets heads head_dim"],
    keys: Float[Tensor, "sources heads head_dim"],
    *,
    edges: Edges,
) -> Float[Tensor, "heads edges"]:
    """Return e_ij = q_i^T k_j for every edge from j to i."""
    result: Tensor = _DotScores.apply(queries, keys, edges)  # type: ignore[no-untyped-call]
    return result


def dynamic_scores(
    queries: Float[Tensor, "targets heads head_dim"],
    keys: Float[Tensor, "sources heads head_dim"],
    readout: Float[Tensor, "heads head_dim"],
    *,
    edges: Edges,
    slope: float,
) -> Float[Tensor, "heads edges"]:
    """Return e_ij = a^T LeakyReLU(q_i + k_j) for every edge from j to i."""
    result: Tensor = _DynamicScores.apply(  # type: ignore[no-untyped-call]
        queries, keys, readout, edges, slope
    )
    return result


def attend_edges(
    scores: Float[Tensor, "heads edges"],
    values: Float[Tensor, "sources heads head_dim"],
    *,
    edges: Edges,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "targets heads head_dim"], Float[Tensor, "heads edges"]]:
    """Return c_i = sum_j alpha_ij v_j and alpha, the softmax of e over the neighbourhood of i.

    Dropout leaves out edges of the sum; alpha is as it was before. No gradient flows through the
    alpha that is returned, only through the sum.
    """
    keep = keep_mask(scores, dropout) if dropout > 0 else None
    context, weights = _AttendEdges.apply(  # type: ignore[no-untyped-call]
        scores, values, edges, keep, 1.0 / (1.0 - dropout)
    )
    return context, weights


class _NeighbourSum(torch.autograd.Function):
    """A sparse product per head; the gradient of the weights is a product at the edges only."""

    @staticmethod
    def forward(ctx, weights, values, edges):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(weights, values)
        ctx.edges = edges
        return _sum(weights, values, edges)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        weights, values = ctx.saved_tensors
        for_weights, for_values, _ = ctx.needs_input_grad
        return (
            _products(gradient, values, ctx.edges) if for_weights else None,
            _sum_back(weights, gradient, ctx.edges) if for_values else None,
            None,
        )


class _AdditiveScores(torch.autograd.Function):
    """LeakyReLU(t_i + s_j); the backward pass needs only the sign of each sum."""

    @staticmethod
    def forward(ctx, target_term, source_term, edges, slope):  # type: ignore[no-untyped-def]
        heads = target_term.shape[1]
        targets, sources = target_term.t().contiguous(), source_term.t().contiguous()
        scores = target_term.new_empty(heads, edges.count)
        positive = scores.new_empty(heads, edges.count, dtype=torch.bool)
        for block in edges.blocks(heads):
            copy = edges.copies(block.stop - block.start)
            part = targets[block].flatten().index_select(0, copy.target)
            part += sources[block].flatten().index_select(0, copy.source)
            torch.gt(part.view_as(scores[block]), 0, out=positive[block])
            scores[block] = F.leaky_relu_(part, slope).view_as(scores[block])
        ctx.save_for_backward(positive)
        ctx.edges, ctx.slope = edges, slope
        return scores

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        (positive,) = ctx.saved_tensors
        edges, heads = ctx.edges, gradient.shape[0]
        targets = gradient.new_zeros(heads, edges.targets)
        sources = gradient.new_zeros(heads, edges.sources)
        for block in edges.blocks(heads):
            copy = edges.copies(block.stop - block.start)
            part = positive[block].to(gradient.dtype).mul_(1 - ctx.slope).add_(ctx.slope)
            part = part.mul_(gradient[block]).flatten()
            targets[block].view(-1).scatter_add_(0, copy.target, part)
            sources[block].view(-1).scatter_add_(0, copy.source, part)
        return targets.t(), sources.t(), None, None


class _DotScores(torch.autograd.Function):
    """q_i^T k_j at the edges; the gradients are weighted sums over the edges."""

    @staticmethod
    def forward(ctx, queries, keys, edges):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(queries, keys)
        ctx.edges = edges
        return _products(queries, keys, edges)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        queries, keys = ctx.saved_tensors
        return _sum(gradient, keys, ctx.edges), _sum_back(gradient, queries, ctx.edges), None


class _DynamicScores(torch.autograd.Function):
    """a^T LeakyReLU(q_i + k_j), chunk by chunk; the vectors are recomputed in the backward pass."""

    @staticmethod
    def forward(ctx, queries, keys, readout, edges, slope):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(queries, keys, readout)
        ctx.edges, ctx.slope = edges, slope
        heads, head_dim = readout.shape
        targets, sources = queries.reshape(edges.targets, -1), keys.reshape(edges.sources, -1)
        scores = readout.new_empty(heads, edges.count)
        for chunk in _chunks(edges):
            ends = targets.index_select(0, edges.target[chunk])
            ends += sources.index_select(0, edges.source[chunk])
            ends = F.leaky_relu_(ends, slope).view(-1, heads, head_dim)
            scores[:, chunk] = ends.mul_(readout).sum(-1).t()
        return scores

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        queries, keys, readout = ctx.saved_tensors
        edges, (heads, head_dim) = ctx.edges, readout.shape
        targets, sources = queries.reshape(edges.targets, -1), keys.reshape(edges.sources, -1)
        for_targets, for_sources = torch.zeros_like(targets), torch.zeros_like(sources)
        for_readout = torch.zeros_like(readout)
        for chunk in _chunks(edges):
            target, source = edges.target[chunk], edges.source[chunk]
            ends = targets.index_select(0, target)
            ends += sources.index_select(0, source)
            ends = ends.view(-1, heads, head_dim)
            steepness = (ends > 0).to(ends.dtype).mul_(1 - ctx.slope).add_(ctx.slope)
            scored = gradient[:, chunk].t()[:, :, None]
            for_readout += (ends * steepness).mul_(scored).sum(0)
            for_ends = steepness.mul_(readout).mul_(scored).view(-1, heads * head_dim)
            for_targets.index_add_(0, target, for_ends)
            for_sources.index_add_(0, source, for_ends)
        return for_targets.view_as(queries), for_sources.view_as(keys), for_readout, None, None


class _AttendEdges(torch.autograd.Function):
    """Softmax, dropout and weighted sum in one, so that the backward pass needs only alpha."""

    @staticmethod
    def forward(ctx, scores, values, edges, keep, scale):  # type: ignore[no-untyped-def]
        weights = _softmax(scores, edges)
        context = _sum(_kept(weights, keep, scale), values, edges)
        ctx.save_for_backward(weights, values, context, keep)
        ctx.edges, ctx.scale = edges, scale
        ctx.mark_non_differentiable(weights)
        return context, weights

    @staticmethod
    def backward(ctx, gradient, _):  # type: ignore[no-untyped-def]
        weights, values, context, keep = ctx.saved_tensors
        edges = ctx.edges
        used = _kept(weights, keep, ctx.scale)
        for_values = _sum_back(used, gradient, edges)
        for_scores = _products(gradient, values, edges)
        # sum_k alpha_ik dL/dalpha_ik = g_i^T c_i, whatever dropout left out: no sum over edges.
        shared = (gradient * context).sum(-1).t().contiguous()
        for block in edges.blocks(weights.shape[0]):
            copy = edges.copies(block.stop - block.start)
            mean = shared[block].flatten().index_select(0, copy.target)
            mean = mean.view_as(weights[block]).mul_(weights[block])
            for_scores[block].mul_(used[block]).sub_(mean)
        return for_scores, for_values, None, None, None


def _softmax(scores: Tensor, edges: Edges) -> Tensor:
    """Return exp(e_ij) / sum_k exp(e_ik), by neighbourhood."""
    weights = torch.empty_like(scores, memory_format=torch.contiguous_format)
    for block in edges.blocks(scores.shape[0]):
        copy = edges.copies(block.stop - block.start)
        part = _shifted(scores[block].reshape(-1), copy).exp_()
        totals = part.new_zeros(copy.targets).scatter_add_(0, copy.target, part)
        part *= totals.reciprocal_().index_select(0, copy.target)
        weights[block] = part.view_as(weights[block])
    return weights


def _shifted(scores: Tensor, edges: Edges) -> Tensor:
    """Return the scores, minus the highest of each neighbourhood where exp would overflow."""
    if not edges.count:
        return scores.clone()
    if not on_host(scores):  # where looking at the numbers would cost a pause
        empty = scores.new_full((edges.targets,), float("-inf"))
        return scores - empty.scatter_reduce_(0, edges.target, scores, "amax")[edges.target]
    low, high = torch.aminmax(scores)
    if low > -60.0 and high < 60.0:  # sums of exp(60) are far from overflow, exp(-60) from zero
        return scores.clone()
    peaks = torch.segment_reduce(
        scores, "max", offsets=edges.starts, axis=0, unsafe=True, initial=float("-inf")
    )
    return scores - peaks.index_select(0, edges.target)


def _kept(weights: Tensor, keep: Tensor | None, scale: float) -> Tensor:
    return weights if keep is None else (weights * keep).mul_(scale)


def _sum(weights: Tensor, values: Tensor, edges: Edges) -> Tensor:
    """Return the weighted sum of the sources' values at each target."""
    _, heads, head_dim = values.shape
    table = values.transpose(0, 1).contiguous()  # [heads, sources, head_dim]
    result = values.new_empty(heads, edges.targets, head_dim)
    for block in edges.blocks(heads):
        copy = edges.copies(block.stop - block.start)
        result[block] = F.embedding_bag(
            copy.source,
            table[block].view(-1, head_dim),
            copy.starts,
            mode="sum",
            per_sample_weights=weights[block].flatten(),
            include_last_offset=True,
        ).view(-1, edges.targets, head_dim)
    return result.transpose(0, 1)


def _sum_back(weights: Tensor, values: Tensor, edges: Edges) -> Tensor:
    """Return the weighted sum of the targets' values at each source."""
    return _sum(weights.index_select(1, edges.by_source), values, edges.reversed)


def _products(queries: Tensor, keys: Tensor, edges: Edges) -> Tensor:
    """Return the inner product of the two ends of each edge."""
    _, heads, head_dim = queries.shape
    targets, sources = queries.reshape(edges.targets, -1), keys.reshape(edges.sources, -1)
    result = queries.new_empty(heads, edges.count)
    for chunk in _chunks(edges):
        ends = targets.index_select(0, edges.target[chunk])
        ends *= sources.index_select(0, edges.source[chunk])
        result[:, chunk] = ends.view(-1, heads, head_dim).sum(-1).t()
    return result


def _chunks(edges: Edges) -> list[slice]:
    size = CHUNK if on_host(edges.source) else LARGE_CHUNK
    return [slice(first, first + size) for first in range(0, edges.count, size)]


def _starts(ends: Tensor, nodes: int) -> Tensor:
    """Return where each node's edges begin, if the edges are sorted by this end."""
    counts = ends.new_zeros(nodes).scatter_add_(0, ends, torch.ones_like(ends))
    return F.pad(counts.cumsum(0), (1, 0))
