"""Graph attention: scores on edges, weights over each node's neighbourhood, a weighted sum.

The same three steps as everywhere, with edges in the place of (query, key) pairs. They have scores
of their own, because all pairs of a graph would not fit into memory. Adding one takes one class
here and one line in `EDGE_SCORES`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import nn

from regard.attention import edges as edge_kernels
from regard.attention.probe import Probe
from regard.base.results import Attended
from regard.base.shapes import Float, Int, Tensor
from regard.compute.dropout import drop


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """The entries of a feature matrix that are not zero: edges from columns to rows."""

    entries: edge_kernels.Edges
    values: Float[Tensor, "entries"]

    @property
    def shape(self) -> tuple[int, int]:
        """Return (nodes, features)."""
        return self.entries.targets, self.entries.sources


Features: TypeAlias = Float[Tensor, "nodes features"] | SparseFeatures


@dataclass(frozen=True, eq=False)
class GraphInput:
    """What a model of a graph reads: features, edges, and the type of each edge."""

    features: Features
    edges: edge_kernels.Edges
    edge_types: Int[Tensor, "edges"]
    edge_vectors: Float[Tensor, "edges width"] | None = None
    """What the data says of each edge, if it does; zero for self-loops."""
    edge_numbers: Int[Tensor, "edges"] | None = None
    """Which edges of the whole graph these are; None if they are all, in order."""


# Whose scores are held at once where nothing is learned and no weight is asked for.
EDGES_AT_ONCE = 1 << 21


def by_targets(edges: edge_kernels.Edges) -> Iterator[tuple[slice, edge_kernels.Edges]]:
    """Yield whole neighbourhoods in blocks: their targets, and the edges that end there."""
    if edges.count <= EDGES_AT_ONCE:
        yield slice(0, edges.targets), edges
        return
    first = 0
    while first < edges.targets:
        begin = int(edges.starts[first])
        room = int(torch.searchsorted(edges.starts, begin + EDGES_AT_ONCE, right=True))
        last = max(first + 1, room - 1)  # a node with more neighbours is a block of its own
        part = slice(begin, int(edges.starts[last]))
        starts = edges.starts[first : last + 1] - begin
        ends = edges.target[part] - first
        block = edge_kernels.Edges(edges.source[part], ends, starts, edges.sources, (edges, part))
        yield slice(first, last), block
        first = last


class NodeLinear(nn.Module):
    """W h for every node, with W as [input_dim, output_dim] (Glorot & Bengio 2010 at the start)."""

    def __init__(
        self, input_dim: int, output_dim: int, *, bias: bool = True, fan_out: int | None = None
    ):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(input_dim, output_dim))
        self.bias = nn.Parameter(torch.zeros(output_dim)) if bias else None
        bound = math.sqrt(6.0 / (input_dim + (fan_out or output_dim)))
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, features: Features) -> Float[Tensor, "nodes output_dim"]:
        """Return the mapped features."""
        if isinstance(features, SparseFeatures):
            table = self.weight[:, None, :]  # [features, 1, output_dim]
            mapped = edge_kernels.neighbour_sum(
                features.values[None], table, edges=features.entries
            ).squeeze(1)
        else:
            mapped = features @ self.weight
        return mapped if self.bias is None else mapped + self.bias


def drop_features(features: Features, dropout: float) -> Features:
    """Return the features after dropout; the zeros of a sparse matrix need none."""
    if dropout == 0.0:
        return features
    if isinstance(features, SparseFeatures):
        return SparseFeatures(features.entries, drop(features.values, dropout))
    return drop(features, dropout)


def dense(features: Features) -> Float[Tensor, "nodes features"]:
    """Return the features as a full matrix."""
    if isinstance(features, Tensor):
        return features
    place = features.entries.target, features.entries.source
    empty = features.values.new_zeros(features.shape)
    return empty.index_put(place, features.values, accumulate=True)


SLOPE = 0.2  # of LeakyReLU, as in Velickovic et al. 2018, section 2.1


class EdgeScore(nn.Module):
    """Scores every edge from its two ends; subclasses give the formula.

    `projections` says how many linear maps of the features it needs: one (queries, keys and values
    are the same), two (keys and values are the same, or with `keys_are_queries` those) or three.
    """

    formula: ClassVar[str] = "e_ij"
    """The formula as people read it."""
    projections: ClassVar[int]
    keys_are_queries: ClassVar[bool] = False

    def __init__(self, *, heads: int, head_dim: int):
        super().__init__()
        self.heads, self.head_dim = heads, head_dim

    def forward(
        self,
        queries: Float[Tensor, "targets heads head_dim"],
        keys: Float[Tensor, "sources heads head_dim"],
        edges: edge_kernels.Edges,
    ) -> Float[Tensor, "heads edges"]:
        """Return one number for each head and each edge from j (key) to i (query)."""
        raise TypeError(f"{type(self).__name__} gives no formula for its score")


class AdditiveEdgeScore(EdgeScore):
    """e_ij = LeakyReLU(a^T [W h_i || W h_j]) (Velickovic et al. 2018, eq. 3)."""

    formula = "e_ij = LeakyReLU(a^T [W h_i || W h_j])"
    projections = 1

    def __init__(self, *, heads: int, head_dim: int):
        super().__init__(heads=heads, head_dim=head_dim)
        self.target_readout = nn.Parameter(torch.empty(heads, head_dim))  # first half of a
        self.source_readout = nn.Parameter(torch.empty(heads, head_dim))  # second half of a
        self.bias = nn.Parameter(torch.zeros(heads))  # not in the paper, but in its authors' code
        bound = math.sqrt(6.0 / (head_dim + 1))
        nn.init.uniform_(self.target_readout, -bound, bound)
        nn.init.uniform_(self.source_readout, -bound, bound)

    def forward(
        self,
        queries: Float[Tensor, "targets heads head_dim"],
        keys: Float[Tensor, "sources heads head_dim"],
        edges: edge_kernels.Edges,
    ) -> Float[Tensor, "heads edges"]:
        """Return LeakyReLU(a_1^T W h_i + a_2^T W h_j + b)."""
        target_term = _read_out(queries, self.target_readout) + self.bias
        source_term = _read_out(keys, self.source_readout)
        return edge_kernels.additive_scores(target_term, source_term, edges=edges, slope=SLOPE)


def _read_out(
    vectors: Float[Tensor, "nodes heads head_dim"], readout: Float[Tensor, "heads head_dim"]
) -> Float[Tensor, "nodes heads"]:
    """Return a^T v for each head: one product with a block-diagonal matrix, which is fastest."""
    blocks: Tensor = torch.block_diag(*readout.unbind())  # type: ignore[no-untyped-call]
    return vectors.flatten(1) @ blocks.t()  # [nodes, heads * head_dim] @ [heads * head_dim, heads]


class DynamicEdgeScore(EdgeScore):
    """e_ij = a^T LeakyReLU(W [h_i || h_j]), GATv2 (Brody et al. 2022, eq. 7).

    Unlike the additive score, it can rank the neighbours of each node differently.
    """

    formula = "e_ij = a^T LeakyReLU(W [h_i || h_j])"
    projections = 2

    def __init__(self, *, heads: int, head_dim: int):
        super().__init__(heads=heads, head_dim=head_dim)
        self.readout = nn.Parameter(torch.empty(heads, head_dim))  # a
        bound = math.sqrt(6.0 / (head_dim + 1))
        nn.init.uniform_(self.readout, -bound, bound)

    def forward(
        self,
        queries: Float[Tensor, "targets heads head_dim"],
        keys: Float[Tensor, "sources heads head_dim"],
        edges: edge_kernels.Edges,
    ) -> Float[Tensor, "heads edges"]:
        """Return a^T LeakyReLU(W_1 h_i + W_2 h_j)."""
        return edge_kernels.dynamic_scores(queries, keys, self.readout, edges=edges, slope=SLOPE)


class ScaledDotEdgeScore(EdgeScore):
    """e_ij = (W_q h_i)^T (W_k h_j) / sqrt(d) (Vaswani et al. 2017, eq. 1, on edges)."""

    formula = "e_ij = (W_q h_i)^T (W_k h_j) / sqrt(d)"
    projections = 3

    def __init__(self, *, heads: int, head_dim: int):
        super().__init__(heads=heads, head_dim=head_dim)
        self.scale = 1.0 / math.sqrt(head_dim)

    def forward(
        self,
        queries: Float[Tensor, "targets heads head_dim"],
        keys: Float[Tensor, "sources heads head_dim"],
        edges: edge_kernels.Edges,
    ) -> Float[Tensor, "heads edges"]:
        """Return q_i^T k_j / sqrt(d)."""
        return edge_kernels.dot_scores(queries * self.scale, keys, edges=edges)


class DistanceEdgeScore(EdgeScore):
    """e_ij = -||a_i - a_j||^2 with learned embeddings a = W_a h: vertex attention (Hoshen 2017, 3).

    The closer two nodes are, the more they hear from each other; what they say is another map.
    """

    formula = "e_ij = -||W_a h_i - W_a h_j||^2"
    projections = 2
    keys_are_queries = True

    def forward(
        self,
        queries: Float[Tensor, "targets heads head_dim"],
        keys: Float[Tensor, "sources heads head_dim"],
        edges: edge_kernels.Edges,
    ) -> Float[Tensor, "heads edges"]:
        """Return 2 a_i^T a_j - |a_i|^2 - |a_j|^2."""
        products = edge_kernels.dot_scores(2 * queries, keys, edges=edges)
        of_target, of_source = (part.square().sum(-1).t() for part in (queries, keys))
        near = of_target.index_select(1, edges.target) + of_source.index_select(1, edges.source)
        return products - near


def end_degrees(edges: edge_kernels.Edges) -> Int[Tensor, "edges 2"]:
    """Return how many edges end in the source and in the target of each edge."""
    if edges.whole is not None:
        whole, part = edges.whole
        return end_degrees(whole)[part]
    degrees = edges.starts.diff()
    return torch.stack([degrees[edges.source], degrees[edges.target]], dim=1)


class GaussianEdgeScore(EdgeScore):
    """e_ij = log w(u_ij), w_k(u) = exp(-1/2 (u - mu_k)^T S_k^-1 (u - mu_k)) (Monti et al. 2017, 4).

    The pseudo-coordinates are the degrees of both ends, u = tanh(A (d_i^-1/2, d_j^-1/2) + b) (the
    same, section 5.2), so neither features nor vectors of edges are compared. S_k is diagonal. Here
    the weights of a neighbourhood sum to one, as those of every score.
    """

    formula = "e_ij = -1/2 (u_ij - mu)^T S^-1 (u_ij - mu)"
    projections = 1
    COORDINATES = 2

    def __init__(self, *, heads: int, head_dim: int):
        super().__init__(heads=heads, head_dim=head_dim)
        self.coordinates = nn.Linear(2, self.COORDINATES)  # A, b
        self.means = nn.Parameter(torch.empty(heads, self.COORDINATES).uniform_(-1, 1))  # mu
        self.log_widths = nn.Parameter(torch.zeros(heads, self.COORDINATES))  # log of S^(1/2)

    def forward(
        self,
        queries: Float[Tensor, "targets heads head_dim"],
        keys: Float[Tensor, "sources heads head_dim"],
        edges: edge_kernels.Edges,
    ) -> Float[Tensor, "heads edges"]:
        """Return the logarithm of each kernel at the coordinates of each edge."""
        degrees = end_degrees(edges).clamp(min=1).to(queries.dtype)
        places = torch.tanh(self.coordinates(degrees.rsqrt()))  # [edges, coordinates]
        precision = torch.exp(-2 * self.log_widths)
        squares = precision @ places.square().t() - 2 * (precision * self.means) @ places.t()
        return -0.5 * (squares + (precision * self.means.square()).sum(dim=1, keepdim=True))


EDGE_SCORES: dict[str, type[EdgeScore]] = {
    "additive": AdditiveEdgeScore,
    "dynamic": DynamicEdgeScore,
    "scaled-dot": ScaledDotEdgeScore,
    "distance": DistanceEdgeScore,
    "gaussian": GaussianEdgeScore,
}


class GraphAttention(nn.Module):
    """h'_i = ||_k sum_j alpha^k_ij W^k h_j over the neighbours j of i (Velickovic et al. 2018).

    Heads are concatenated (eq. 5), or averaged (eq. 6) as in an output layer. The nonlinearity is
    left to the model. Edges are used as they are: self-loops must be among them to count.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        score: EdgeScore,
        concatenate: bool = True,
        feature_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        residual: bool = False,
        projection_bias: bool = False,
    ):
        super().__init__()
        heads, head_dim = score.heads, score.head_dim
        self.heads, self.head_dim = heads, head_dim
        self.concatenate = concatenate
        self.feature_dropout, self.attention_dropout = feature_dropout, attention_dropout
        self.score = score
        self.project = nn.ModuleList(
            NodeLinear(input_dim, heads * head_dim, bias=projection_bias, fan_out=head_dim)
            for _ in range(score.projections)
        )
        output_dim = heads * head_dim if concatenate else head_dim
        self.residual = NodeLinear(input_dim, output_dim, bias=False) if residual else None
        self.bias = nn.Parameter(torch.zeros(output_dim))

    def forward(
        self,
        features: Features,
        edges: edge_kernels.Edges,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> Attended:
        """Return the context of each node and, on request, alpha as [edges, heads]."""
        dropout = self.feature_dropout if self.training else 0.0
        features = drop_features(features, dropout)
        parts = [self._heads(project(features)) for project in self.project]
        # With fewer than three projections, some of queries, keys and values are the same tensor.
        own_keys = 0 if self.score.keys_are_queries else min(1, len(parts) - 1)
        queries, keys, values = parts[0], parts[own_keys], parts[-1]
        values = drop(values, dropout)
        weights = None
        if with_weights or probe is not None or torch.is_grad_enabled():
            context, weights = self._attended(queries, keys, values, edges, probe)
        else:
            context = torch.empty_like(queries)
            for rows, block in by_targets(edges):
                context[rows], _ = self._attended(queries[rows], keys, values, block, None)
        joined = context.flatten(1) if self.concatenate else context.mean(1)
        if self.residual is not None:
            joined = joined + self.residual(features)
        shown = weights.t() if with_weights and weights is not None else None
        return Attended(joined + self.bias, shown)

    def _attended(
        self,
        queries: Float[Tensor, "targets heads _"],
        keys: Float[Tensor, "sources heads _"],
        values: Float[Tensor, "sources heads _"],
        edges: edge_kernels.Edges,
        probe: Probe | None,
    ) -> tuple[Float[Tensor, "targets heads _"], Float[Tensor, "heads edges"]]:
        """Return the context of each target, and alpha."""
        scores = self.score(queries, keys, edges)
        if probe is not None:
            scores, values = probe("edge_scores", scores), probe("node_values", values)
        context, weights = edge_kernels.attend_edges(
            scores,
            values,
            edges=edges,
            dropout=self.attention_dropout if self.training else 0.0,
        )
        if probe is not None:
            weights = probe("edge_weights", weights)
            context = edge_kernels.neighbour_sum(weights, values, edges=edges)
            context = probe("node_context", context)
        return context, weights

    def _heads(self, projected: Float[Tensor, "nodes width"]) -> Float[Tensor, "nodes heads _"]:
        return projected.view(-1, self.heads, self.head_dim)
