"""Layers to compare graph attention with: graph convolution, and messages along typed edges."""

from __future__ import annotations

import torch
from torch import nn

from regard.attention.edges import Edges, neighbour_sum
from regard.attention.features import Features, NodeLinear, drop_features
from regard.base.shapes import Float, Int, Tensor


class GraphConvolution(nn.Module):
    """H' = D^(-1/2) A D^(-1/2) H W, A with self-loops (Kipf & Welling 2017, eq. 2).

    The weight of an edge is fixed by the degrees of its ends; nothing is attended to.
    """

    def __init__(self, *, input_dim: int, output_dim: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = dropout
        self.linear = NodeLinear(input_dim, output_dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(output_dim))

    def forward(self, features: Features, edges: Edges) -> Float[Tensor, "nodes output_dim"]:
        """Return the mean of the neighbours, symmetrically normalised."""
        features = drop_features(features, self.dropout if self.training else 0.0)
        weights = symmetric_weights(edges)[None]  # [1, edges]
        mapped = self.linear(features)[:, None]  # [nodes, 1, output_dim]
        return neighbour_sum(weights, mapped, edges=edges).squeeze(1) + self.bias


def symmetric_weights(edges: Edges) -> Float[Tensor, "edges"]:
    """Return 1 / sqrt(d_i d_j) for each edge, d_i being the number of edges that end in i."""
    shrink = edges.starts.diff().clamp(min=1).float().rsqrt()
    return shrink[edges.target] * shrink[edges.source]


class MessagePassing(nn.Module):
    """m_ij = ReLU(W h_j + E[type_ij]), h'_i = U h_i + V mean_j m_ij (Gilmer et al. 2017, eq. 1-2).

    Each type of edge (given, reversed, self-loop) has a vector of its own.
    """

    def __init__(self, *, input_dim: int, output_dim: int, edge_types: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = dropout
        self.message = NodeLinear(input_dim, output_dim, bias=False)  # W
        self.edge_embedding = nn.Embedding(edge_types, output_dim)  # E
        self.own = NodeLinear(input_dim, output_dim)  # U
        self.heard = NodeLinear(output_dim, output_dim, bias=False)  # V

    def forward(
        self, features: Features, edges: Edges, edge_types: Int[Tensor, "edges"]
    ) -> Float[Tensor, "nodes output_dim"]:
        """Return what each node keeps of itself and hears from its neighbours."""
        features = drop_features(features, self.dropout if self.training else 0.0)
        sent = self.message(features).index_select(0, edges.source)
        messages = torch.relu(sent + self.edge_embedding(edge_types))  # [edges, output_dim]
        total = messages.new_zeros(edges.targets, messages.shape[1])
        total = total.index_add(0, edges.target, messages)
        mean = total / edges.starts.diff().clamp(min=1)[:, None]
        updated: Tensor = self.own(features) + self.heard(mean)
        return updated
