"""Positions: how a model that sees all tokens at once is told their order.

Sinusoids and learned vectors are added to the embeddings. Relative vectors, rotations and linear
penalties act inside the attention, so they know distances and not places.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from regard.base.errors import RegardError
from regard.base.shapes import Float, Int, Tensor


class Sinusoids(nn.Module):
    """sin(p / 10000^(2i/d)), cos(p / 10000^(2i/d)) (Vaswani et al. 2017, section 3.5).

    There is no table, so no position is too far. `layout` says whether sine and cosine alternate,
    as in the paper, or come in halves; `offset` is the place of the first token. With `stretched`
    the slowest wave is 10000 exactly, as some toolkits have it: 10000^(i / (d/2 - 1)).
    """

    def __init__(
        self,
        model_dim: int,
        *,
        layout: str = "interleaved",
        offset: int = 0,
        stretched: bool = False,
    ):
        super().__init__()
        if model_dim % 2:
            raise ValueError(f"sinusoidal positions: model_dim ({model_dim}) must be even")
        waves = model_dim // 2
        self.layout = layout
        self.offset = offset
        steps = torch.arange(waves, dtype=torch.float64) / max(1, waves - 1 if stretched else waves)
        self.rates: Tensor
        # In double precision, so that far positions are as exact as near ones.
        self.register_buffer("rates", torch.exp(-math.log(10_000.0) * steps), persistent=False)

    def forward(
        self, length: int, *, start: int = 0, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "{length} model_dim"]:
        """Return the vectors of `length` positions from `start` on."""
        first = start + self.offset
        places = torch.arange(first, first + length, device=self.rates.device)
        angles = places[:, None] * self.rates.double()  # [length, waves]
        pair = (angles.sin(), angles.cos())
        joined = (
            torch.stack(pair, -1).flatten(1)
            if self.layout == "interleaved"
            else torch.cat(pair, -1)
        )
        return joined.to(dtype)


class LearnedPositions(nn.Module):
    """One vector a position, learned like a word's (Gehring et al. 2017, section 3.1)."""

    def __init__(self, model_dim: int, *, max_length: int):
        super().__init__()
        self.max_length = max_length
        self.vectors = nn.Parameter(torch.empty(max_length, model_dim))
        nn.init.normal_(self.vectors, std=model_dim**-0.5)

    def forward(
        self, length: int, *, start: int = 0, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "{length} model_dim"]:
        """Return the vectors of `length` positions from `start` on."""
        if start + length > self.max_length:
            raise RegardError(
                f"A sequence of {start + length} tokens is longer than the {self.max_length} "
                "positions that this model has learned (model.max_length): split it, or train "
                "with positions that go on, such as sinusoidal."
            )
        return self.vectors[start : start + length].to(dtype)


class RelativePositions(nn.Module):
    """Vectors a^K and a^V for the distance of key and query (Shaw et al. 2018, eq. 3-4).

    Distances beyond `reach` share the vector of the farthest one.
    """

    def __init__(self, head_dim: int, *, reach: int = 16):
        super().__init__()
        self.reach = reach
        self.keys = nn.Parameter(torch.empty(2 * reach + 1, head_dim))
        self.values = nn.Parameter(torch.empty(2 * reach + 1, head_dim))
        for table in (self.keys, self.values):
            nn.init.xavier_uniform_(table)

    def scores(
        self,
        query: Float[Tensor, "batch heads target head_dim"],
        distances: Int[Tensor, "target source"],
    ) -> Float[Tensor, "batch heads target source"]:
        """Return q_i . a^K_ij for every pair."""
        by_distance = query @ self.keys.T  # [batch, heads, target, 2 reach + 1]
        index = self._index(distances).expand(*query.shape[:2], -1, -1)
        return by_distance.gather(-1, index)

    def context(
        self,
        weights: Float[Tensor, "batch heads target source"],
        distances: Int[Tensor, "target source"],
    ) -> Float[Tensor, "batch heads target head_dim"]:
        """Return sum_j alpha_ij a^V_ij, gathering the weights of one distance first."""
        index = self._index(distances).expand(*weights.shape[:2], -1, -1)
        by_distance = weights.new_zeros(*weights.shape[:3], len(self.values))
        return by_distance.scatter_add(-1, index, weights) @ self.values

    def _index(self, distances: Int[Tensor, "target source"]) -> Int[Tensor, "target source"]:
        return distances.clamp(-self.reach, self.reach) + self.reach


class Rotary(nn.Module):
    """Turns queries and keys by an angle that grows with the position (Su et al. 2021, eq. 34).

    The product of a turned query and a turned key depends on their distance alone.
    """

    def __init__(self, head_dim: int):
        super().__init__()
        if head_dim % 2:
            raise ValueError(f"rotary positions: the width of a head ({head_dim}) must be even")
        self.sinusoids = Sinusoids(head_dim, layout="halves")

    def forward(
        self, heads: Float[Tensor, "batch heads time head_dim"], *, start: int = 0
    ) -> Float[Tensor, "batch heads time head_dim"]:
        """Return the vectors turned by the angles of the positions from `start` on."""
        waves = self.sinusoids(heads.shape[2], start=start, dtype=heads.dtype)
        sine, cosine = waves.chunk(2, dim=-1)  # [time, head_dim / 2]
        first, second = heads.chunk(2, dim=-1)
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


def alibi_slopes(heads: int) -> Float[Tensor, "{heads}"]:
    """Return how steeply each head's scores fall with distance (Press et al. 2022, section 3).

    For 2^n heads they are 2^(-8/h), 2^(-16/h), ...; other numbers take every other slope of the
    next power of two to fill up, as the authors do.
    """
    whole = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (head + 1) / whole) for head in range(whole)]
    finer = [2 ** (-8 * (head + 1) / (2 * whole)) for head in range(2 * whole)]
    return torch.tensor(slopes + finer[0::2][: heads - whole])
