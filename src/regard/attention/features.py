"""Node features, dense or sparse, and the linear map that takes both.

A sparse feature matrix is a graph too: an edge leads from each column that is not zero to its row,
so the product with a weight matrix is the same sum over edges that attention uses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import nn

from regard.attention.edges import Edges, drop, neighbour_sum
from regard.base.shapes import Float, Int, Tensor


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """The entries of a feature matrix that are not zero: edges from columns to rows."""

    entries: Edges
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
    edges: Edges
    edge_types: Int[Tensor, "edges"]


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
            mapped = neighbour_sum(features.values[None], table, edges=features.entries).squeeze(1)
        else:
            mapped = features @ self.weight
        return mapped if self.bias is None else mapped + self.bias


def drop_features(features: Features, dropout: float) -> Features:
    """Return the features after dropout; zeros of a sparse matrix need no coin."""
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
    return torch.zeros(features.shape).index_put(place, features.values, accumulate=True)
