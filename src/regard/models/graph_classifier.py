"""The node classifier: a stack of graph layers with ELU between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch.nn.functional as F
from torch import nn

from regard.attention.features import GraphInput
from regard.attention.graph import EDGE_SCORES, GraphAttention
from regard.base.shapes import Float, Tensor
from regard.models.graph_layers import GraphConvolution, MessagePassing
from regard.settings.graph import GraphModelSettings
from regard.settings.suggest import require_known

EDGE_TYPES = 3  # given, reversed, self-loop


@dataclass(frozen=True, eq=False)
class NodeOutput:
    """Logits, the features of the last hidden layer, and the attention of each layer if asked."""

    logits: Float[Tensor, "nodes classes"]
    hidden: Float[Tensor, "nodes hidden"] | None
    attention: tuple[Float[Tensor, "edges _"], ...]


class GraphClassifier(nn.Module):
    """logits = layer_L(... ELU(layer_1(features)))."""

    def __init__(self, layers: Sequence[nn.Module]):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, graph: GraphInput, *, with_weights: bool = False) -> NodeOutput:
        """Return the classes of all nodes."""
        first, *others = self.layers
        features, attention = _apply(first, graph, with_weights)
        hidden = None
        for layer in others:
            hidden = F.elu(features)
            features, weights = _apply(layer, replace(graph, features=hidden), with_weights)
            attention += weights
        return NodeOutput(features, hidden, tuple(attention))


def _apply(layer: nn.Module, graph: GraphInput, with_weights: bool) -> tuple[Tensor, list[Tensor]]:
    """Return what a layer makes of the features, and its attention if it has any."""
    if isinstance(layer, GraphAttention):
        context, weights = layer(graph.features, graph.edges, with_weights=with_weights)
        return context, [] if weights is None else [weights]
    if isinstance(layer, MessagePassing):
        return layer(graph.features, graph.edges, graph.edge_types), []
    return layer(graph.features, graph.edges), []


def build_graph_classifier(
    settings: GraphModelSettings, *, features: int, classes: int
) -> GraphClassifier:
    """Return a fresh classifier of nodes."""
    require_known(settings.score, EDGE_SCORES, what="model.score")
    build = {"attention": _attention, "convolution": _convolution, "messages": _messages}
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
    heads = settings.output_heads if last else settings.heads
    return GraphAttention(
        input_dim=input_dim,
        head_dim=output_dim if last else settings.head_dim,
        heads=heads,
        score=settings.score,
        concatenate=not last,
        feature_dropout=settings.dropout,
        attention_dropout=settings.attention_dropout,
        residual=settings.residual,
    )


def _convolution(
    settings: GraphModelSettings, input_dim: int, output_dim: int, *, last: bool
) -> nn.Module:
    return GraphConvolution(input_dim=input_dim, output_dim=output_dim, dropout=settings.dropout)


def _messages(
    settings: GraphModelSettings, input_dim: int, output_dim: int, *, last: bool
) -> nn.Module:
    return MessagePassing(
        input_dim=input_dim,
        output_dim=output_dim,
        edge_types=EDGE_TYPES,
        dropout=settings.dropout,
    )
