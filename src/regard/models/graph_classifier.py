"""The node classifier: a stack of graph layers with ELU between them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

from regard.attention import graph as graphs
from regard.attention.edges import Edges, neighbour_sum
from regard.attention.probe import Probe
from regard.base.errors import SettingsError
from regard.base.shapes import Float, Tensor
from regard.settings.models import GraphModelSettings
from regard.settings.recipe import require_known


class GraphConvolution(nn.Module):
    """H' = D^(-1/2) A D^(-1/2) H W, A with self-loops (Kipf & Welling 2017, eq. 2).

    The weight of an edge is fixed by the degrees of its ends; nothing is attended to.
    """

    def __init__(self, *, input_dim: int, output_dim: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = dropout
        self.linear = graphs.NodeLinear(input_dim, output_dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(output_dim))

    def forward(self, features: graphs.Features, edges: Edges) -> Float[Tensor, "nodes output_dim"]:
        """Return the mean of the neighbours, symmetrically normalised."""
        features = graphs.drop_features(features, self.dropout if self.training else 0.0)
        weights = symmetric_weights(edges)[None]  # [1, edges]
        mapped = self.linear(features)[:, None]  # [nodes, 1, output_dim]
        return neighbour_sum(weights, mapped, edges=edges).squeeze(1) + self.bias


def symmetric_weights(edges: Edges) -> Float[Tensor, "edges"]:
    """Return 1 / sqrt(d_i d_j) for each edge, d_i being the number of edges that end in i."""
    shrink = edges.starts.diff().clamp(min=1).float().rsqrt()
    return shrink[edges.target] * shrink[edges.source]


EDGE_TYPES = 3  # given, reversed, self-loop


@dataclass(frozen=True)
class EdgeVectors:
    """Where the vectors of edges come from, and how many there are, or how wide they are."""

    kind: str = "types"
    count: int = EDGE_TYPES

    def describing(self, graph: graphs.GraphInput) -> Tensor:
        """Return what each edge's vector is looked up by, or made of."""
        if self.kind == "types":
            return graph.edge_types.int()
        if self.kind == "given":
            width = None if graph.edge_vectors is None else graph.edge_vectors.shape[1]
            if graph.edge_vectors is None or width != self.count:
                raise SettingsError(
                    f'model.edge_vectors = "given" needs vectors of {self.count} numbers for the '
                    f"edges; this graph has {'none' if width is None else width}."
                )
            return graph.edge_vectors
        numbers = graph.edge_numbers
        if numbers is None:
            numbers = torch.arange(graph.edges.count, device=graph.edges.source.device)
        if len(numbers) and int(numbers.max()) >= self.count:
            raise SettingsError(
                f'model.edge_vectors = "learned" has vectors for {self.count} edges, but this '
                f"graph has {int(numbers.max()) + 1}: it must be the graph of the training."
            )
        return numbers


class MessagePassing(nn.Module):
    """m_ij = ReLU(W h_j + e_ij), h'_i = U h_i + V mean_j m_ij (Gilmer et al. 2017, eq. 1-2).

    The vector e_ij is learned for each type of edge (given, reversed, self-loop) or for each edge,
    or it is a linear map of what the data says of the edge.
    """

    def __init__(
        self, *, input_dim: int, output_dim: int, of_edges: EdgeVectors, dropout: float = 0.0
    ):
        super().__init__()
        self.dropout = dropout
        self.of_edges = of_edges
        self.message = graphs.NodeLinear(input_dim, output_dim, bias=False)  # W
        self.edge_embedding = (
            graphs.NodeLinear(of_edges.count, output_dim, bias=False)
            if of_edges.kind == "given"
            else nn.Embedding(of_edges.count, output_dim)
        )
        self.self_update = graphs.NodeLinear(input_dim, output_dim)  # U
        self.message_update = graphs.NodeLinear(output_dim, output_dim, bias=False)  # V

    def forward(self, graph: graphs.GraphInput) -> Float[Tensor, "nodes output_dim"]:
        """Return the updated features of each node."""
        edges, described = graph.edges, self.of_edges.describing(graph)
        features = graphs.drop_features(graph.features, self.dropout if self.training else 0.0)
        values, totals, first = self.message(features), [], 0
        for _, block in graphs.by_targets(edges):
            vectors = self.edge_embedding(described[first : first + block.count])
            sent = values.index_select(0, block.source)
            messages = torch.relu(sent + vectors)  # [edges, output_dim]
            empty = values.new_zeros(block.targets, values.shape[1])
            totals.append(empty.index_add(0, block.target, messages))
            first += block.count
        mean = torch.cat(totals) / edges.starts.diff().clamp(min=1)[:, None]
        updated: Tensor = self.self_update(features) + self.message_update(mean)
        return updated


@dataclass(frozen=True, eq=False)
class NodeOutput:
    """Logits, features of the last hidden layer and, on request, the attention of each layer."""

    logits: Float[Tensor, "nodes classes"]
    hidden: Float[Tensor, "nodes hidden"] | None
    attention: tuple[Float[Tensor, "edges _"], ...]


class GraphClassifier(nn.Module):
    """logits = layer_L(... ELU(layer_1(features))) (Velickovic et al. 2018, section 3.3)."""

    def __init__(self, layers: Sequence[nn.Module]):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(
        self,
        graph: graphs.GraphInput,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> NodeOutput:
        """Return the classes of all nodes."""
        first, *others = self.layers
        inside = None if probe is None else probe.at(part="graph")
        features, attention = _apply(first, graph, with_weights, inside)
        hidden = None
        for number, layer in enumerate(others, 1):
            features = hidden = F.elu(features)
            inside = None if inside is None else inside.at(layer=number)
            features, weights = _apply(layer, replace(graph, features=hidden), with_weights, inside)
            attention += weights
        return NodeOutput(features, hidden, tuple(attention))


def _apply(
    layer: nn.Module, graph: graphs.GraphInput, with_weights: bool, probe: Probe | None
) -> tuple[Tensor, list[Tensor]]:
    """Return what a layer makes of the features, and its attention if it has any."""
    if isinstance(layer, graphs.GraphAttention):
        context, weights = layer(
            graph.features, graph.edges, with_weights=with_weights, probe=probe
        )
        return context, [] if weights is None else [weights]
    if isinstance(layer, MessagePassing):
        return layer(graph), []
    return layer(graph.features, graph.edges), []


def build_graph_classifier(
    settings: GraphModelSettings,
    *,
    features: int,
    classes: int,
    edges: EdgeVectors | None = None,
) -> GraphClassifier:
    """Return a fresh classifier of nodes; `edges` says what is known of edges, if it is asked."""
    if settings.layer == "messages":
        of_edges = EdgeVectors() if edges is None else edges
        if of_edges.kind != settings.edge_vectors:
            raise SettingsError(
                f'model.edge_vectors = "{settings.edge_vectors}" needs the graph: it has vectors '
                "for its edges."
            )
        return _message_classifier(settings, features, classes, of_edges)
    require_known(settings.score, graphs.EDGE_SCORES, what="model.score")
    build = {"attention": _attention, "convolution": _convolution}
    build_layer = build[settings.layer]
    attends = settings.layer == "attention"
    width = settings.heads * settings.head_dim if attends else settings.hidden
    inner = settings.layers - 1
    return GraphClassifier(
        [
            *(
                build_layer(settings, features if number == 0 else width, width, last=False)
                for number in range(inner)
            ),
            build_layer(settings, width if inner else features, classes, last=True),
        ]
    )


def _attention(
    settings: GraphModelSettings, input_dim: int, output_dim: int, *, last: bool
) -> nn.Module:
    return graphs.GraphAttention(
        input_dim=input_dim,
        score=graphs.EDGE_SCORES[settings.score](
            heads=settings.output_heads if last else settings.heads,
            head_dim=output_dim if last else settings.head_dim,
        ),
        concatenate=not last,
        feature_dropout=settings.dropout,
        attention_dropout=settings.attention_dropout,
        residual=settings.residual,
    )


def _convolution(
    settings: GraphModelSettings, input_dim: int, output_dim: int, *, last: bool
) -> nn.Module:
    return GraphConvolution(input_dim=input_dim, output_dim=output_dim, dropout=settings.dropout)


def _message_classifier(
    settings: GraphModelSettings, features: int, classes: int, of_edges: EdgeVectors
) -> GraphClassifier:
    widths = [features, *[settings.hidden] * (settings.layers - 1), classes]
    return GraphClassifier(
        [
            MessagePassing(
                input_dim=before, output_dim=after, of_edges=of_edges, dropout=settings.dropout
            )
            for before, after in pairwise(widths)
        ]
    )
