"""Where a kind of positions acts: the base classes of `positions`, and what they may need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from regard.base.shapes import Float, Int, Tensor


@dataclass(frozen=True, kw_only=True)
class PositionOptions:
    """The sizes and choices of a model that a kind of positions may need."""

    model_dim: int
    heads: int
    max_length: int = 512
    reach: int = 16
    sinusoids: str = "interleaved"
    sinusoid_offset: int = 0
    stretched_sinusoids: bool = False
    learned_offset: int = 0
    head_dim: int | None = None
    rotary_base: float = 10_000.0
    rotary_factor: float = 1.0
    rotary_low: float = 1.0
    rotary_high: float = 4.0
    rotary_length: int = 8_192
    buckets: int = 32
    bucket_reach: int = 128
    causal: bool = False
    """Whether no query sees a key that comes after it."""

    @property
    def head_width(self) -> int:
        """The width of one head."""
        return self.head_dim or self.model_dim // self.heads


class Positions(nn.Module):
    """A kind of positions; subclasses say where they act and how they are built."""

    changes_scores: ClassVar[bool] = False
    """Whether scores must be made for all pairs, which a linear kernel does not do."""
    wants_large_embeddings: ClassVar[bool] = False
    """Whether embeddings must be scaled up, because the vectors added to them are large."""

    @classmethod
    def build(cls, options: PositionOptions) -> Positions:
        """Return fresh positions for a model of these sizes."""
        raise TypeError(f"{cls.__name__} does not say how it is built")

    def redraw(self, spread: float) -> None:
        """Draw learned vectors that are added to embeddings anew, as widely as those."""


class AddedPositions(Positions):
    """A vector for each position, added to the embedding there."""

    max_length: int | None = None
    """None if there is no limit."""

    def forward(
        self, length: int, *, start: int = 0, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "{length} model_dim"]:
        """Return the vectors of `length` positions from `start` on."""
        raise TypeError(f"{type(self).__name__} gives no vectors")


class RotatedPositions(Positions):
    """A change of queries and keys that depends on where each of them is."""

    def forward(
        self, heads: Float[Tensor, "batch heads time head_dim"], *, start: int = 0
    ) -> Float[Tensor, "batch heads time head_dim"]:
        """Return queries or keys, changed by their positions, the first of which is `start`."""
        raise TypeError(f"{type(self).__name__} gives no rotation")

    def agreement(self, length: int, *, head_dim: int) -> Float[Tensor, "{length} waves"]:
        """Return the product of each unit vector with itself at every distance below `length`."""
        units = torch.eye(head_dim, dtype=torch.float64)[None, :, None]
        # [1, head_dim, length, head_dim]
        moved: Tensor = self(units.expand(-1, -1, length, -1))
        return (moved * moved[:, :, :1]).sum(-1)[0].T


class PairPositions(Positions):
    """Terms for each pair of query and key: one in their score, one in the context."""

    changes_scores = True

    def shifted(
        self, query: Float[Tensor, "batch heads target head_dim"]
    ) -> Float[Tensor, "batch heads target head_dim"]:
        """Return the queries that meet the keys, and that `scores` gets after scaling."""
        return query

    def scores(
        self,
        query: Float[Tensor, "batch heads target head_dim"],
        distances: Int[Tensor, "target source"],
    ) -> Float[Tensor, "batch heads target source"]:
        """Return what is added to the score of every pair."""
        raise TypeError(f"{type(self).__name__} gives no scores")

    def context(
        self,
        weights: Float[Tensor, "batch heads target source"],
        distances: Int[Tensor, "target source"],
    ) -> Float[Tensor, "batch heads target head_dim"]:
        """Return what is added to the context of every query."""
        raise TypeError(f"{type(self).__name__} gives no context")

    def by_distance(self) -> tuple[range, Float[Tensor, "distances head_dim"]]:
        """Return the distances that are distinguished, and the vector of a key for each of them."""
        raise TypeError(f"{type(self).__name__} gives no vectors")


class DistanceBias(Positions):
    """A number for each head and each distance of key and query, added to their score."""

    changes_scores = True

    def forward(
        self, distances: Int[Tensor, "target source"], *, dtype: torch.dtype
    ) -> Float[Tensor, "heads target source"]:
        """Return the bias of every pair, given the position of the key minus that of the query."""
        raise TypeError(f"{type(self).__name__} gives no bias")
