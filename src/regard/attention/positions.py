"""Positions: how a model that reads all tokens at once knows their order.

A kind of positions acts in one of four places: it adds vectors to the embeddings, rotates queries
and keys, adds terms to the scores and contexts of pairs, or adds a bias that depends on distance.
Adding a kind takes one class here, derived from the base of its place, and one line in `POSITIONS`.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from regard.attention.places import (
    AddedPositions,
    DistanceBias,
    PairPositions,
    PositionOptions,
    Positions,
    RotatedPositions,
)
from regard.base.errors import RegardError
from regard.base.shapes import Float, Int, Tensor
from regard.compute.tables import RowTable


class NoPositions(Positions):
    """Nothing tells the order: without a mask, a sentence is a bag of tokens."""

    @classmethod
    def build(cls, options: PositionOptions) -> NoPositions:
        """Return the absence of positions."""
        return cls()


class Sinusoids(AddedPositions):
    """sin(p / 10000^(2i/d)), cos(p / 10000^(2i/d)) (Vaswani et al. 2017, section 3.5).

    There is no table, so no position is too far. `layout` says whether sine and cosine alternate,
    as in the paper, or come in halves; `offset` is the place of the first token. With `stretched`
    the slowest wave is 10000 exactly, as some toolkits have it: 10000^(i / (d/2 - 1)).
    """

    wants_large_embeddings = True  # sines and cosines are of size 1

    def __init__(
        self,
        model_dim: int,
        *,
        layout: str = "interleaved",
        offset: int = 0,
        stretched: bool = False,
        base: float = 10_000.0,
    ):
        super().__init__()
        if model_dim % 2:
            raise ValueError(f"sinusoidal positions: model_dim ({model_dim}) must be even")
        waves = model_dim // 2
        self.layout, self.offset = layout, offset
        # In double precision, so that far positions are as exact as near ones.
        steps = torch.arange(waves, dtype=torch.float64) / max(1, waves - stretched)
        self.rates = torch.exp(-math.log(base) * steps)
        self.here: Tensor
        self.register_buffer("here", torch.empty(0), persistent=False)  # moves with the model
        self.table = RowTable(self._vectors)

    @classmethod
    def build(cls, options: PositionOptions) -> Sinusoids:
        """Return sinusoids in the layout of the options."""
        layout, offset = options.sinusoids, options.sinusoid_offset
        stretched = options.stretched_sinusoids
        return cls(options.model_dim, layout=layout, offset=offset, stretched=stretched)

    def forward(
        self, length: int, *, start: int = 0, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "{length} model_dim"]:
        """Return the vectors of `length` positions from `start` on."""
        return self.table.on(self.here, first=start + self.offset, length=length, dtype=dtype)

    def _vectors(self, first: int, length: int, dtype: torch.dtype) -> Tensor:
        angles = torch.arange(first, first + length, device=self.rates.device)[:, None] * self.rates
        pair, halves = (angles.sin(), angles.cos()), self.layout == "halves"  # [length, waves]
        return (torch.cat(pair, -1) if halves else torch.stack(pair, -1).flatten(1)).to(dtype)


class LearnedPositions(AddedPositions):
    """One vector a position, learned like a word's (Gehring et al. 2017, section 3.1)."""

    max_length: int

    def __init__(self, model_dim: int, *, max_length: int, offset: int = 0):
        """`offset` is the number of rows before that of the first position (BART has 2)."""
        super().__init__()
        self.max_length = max_length
        self.offset = offset
        self.vectors = nn.Parameter(torch.empty(offset + max_length, model_dim))
        nn.init.normal_(self.vectors, std=model_dim**-0.5)

    @classmethod
    def build(cls, options: PositionOptions) -> LearnedPositions:
        """Return a table of `max_length` vectors."""
        offset = options.learned_offset
        return cls(options.model_dim, max_length=options.max_length, offset=offset)

    def redraw(self, spread: float) -> None:
        """Draw the vectors anew."""
        nn.init.normal_(self.vectors, std=spread)

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
        first = self.offset + start
        return self.vectors[first : first + length].to(dtype)


class RelativePositions(PairPositions):
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

    @classmethod
    def build(cls, options: PositionOptions) -> RelativePositions:
        """Return vectors as wide as a head."""
        return cls(options.head_width, reach=options.reach)

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

    def by_distance(self) -> tuple[range, Float[Tensor, "distances head_dim"]]:
        """Return the distances within reach, and a^K of each."""
        return range(-self.reach, self.reach + 1), self.keys

    def _index(self, distances: Int[Tensor, "target source"]) -> Int[Tensor, "target source"]:
        return distances.clamp(-self.reach, self.reach) + self.reach


class SegmentPositions(PairPositions):
    """(q_i + u) k_j + (q_i + v) W_R r_{i-j}, which a memory needs (Dai et al. 2019, section 3.3).

    r are sinusoids of the distance, so none is too far; u and v say what content and what distance
    each head prefers, whatever the query.
    """

    def __init__(self, model_dim: int, *, heads: int, head_dim: int):
        super().__init__()
        self.sinusoids = Sinusoids(model_dim, layout="halves")
        self.projection = nn.Linear(model_dim, heads * head_dim, bias=False)  # W_R
        self.content = nn.Parameter(torch.zeros(heads, 1, head_dim))  # u
        self.place = nn.Parameter(torch.zeros(heads, 1, head_dim))  # v
        nn.init.xavier_uniform_(self.projection.weight)

    @classmethod
    def build(cls, options: PositionOptions) -> SegmentPositions:
        """Return positions for these heads."""
        return cls(options.model_dim, heads=options.heads, head_dim=options.head_width)

    def shifted(
        self, query: Float[Tensor, "batch heads target head_dim"]
    ) -> Float[Tensor, "batch heads target head_dim"]:
        """Return q + u."""
        return query + self.content

    def scores(
        self,
        query: Float[Tensor, "batch heads target head_dim"],
        distances: Int[Tensor, "target source"],
    ) -> Float[Tensor, "batch heads target source"]:
        """Return (q_i + v) W_R r_{i-j} for every pair, given (q_i + u) / sqrt(d)."""
        target, source = distances.shape
        vectors = self._vectors(target + source - 1, start=1 - target)
        change = (self.place - self.content) / math.sqrt(query.shape[-1])
        by_distance = (query + change) @ vectors.mT  # [batch, heads, target, distances]
        index = (target - 1 - distances).expand(*query.shape[:2], -1, -1)
        return by_distance.gather(-1, index)

    def context(
        self,
        weights: Float[Tensor, "batch heads target source"],
        distances: Int[Tensor, "target source"],
    ) -> Float[Tensor, ""]:
        """Return zero: positions change no values."""
        return weights.new_zeros(())

    def by_distance(self) -> tuple[range, Float[Tensor, "distances width"]]:
        """Return some distances, and W_R r of each, all heads side by side."""
        shown = range(-16, 17)
        vectors = self._vectors(len(shown), start=-16).flip(1)
        return shown, vectors.transpose(0, 1).flatten(1)

    def _vectors(self, count: int, *, start: int) -> Float[Tensor, "heads {count} head_dim"]:
        """Return W_R r for each of `count` distances behind the query, from `start` on."""
        waves = self.sinusoids(count, start=start, dtype=self.projection.weight.dtype)
        heads: Tensor = self.projection(waves)
        return heads.view(count, len(self.content), -1).transpose(0, 1)


class Rotary(RotatedPositions):
    """Rotates queries and keys by an angle that grows with the position (Su et al. 2021, eq. 34).

    The product of a rotated query and a rotated key depends on their distance alone.
    """

    def __init__(self, head_dim: int, *, base: float = 10_000.0):
        super().__init__()
        if head_dim % 2:
            raise ValueError(f"rotary positions: the width of a head ({head_dim}) must be even")
        self.sinusoids = Sinusoids(head_dim, layout="halves", base=base)

    @classmethod
    def build(cls, options: PositionOptions) -> Rotary:
        """Return rotations as wide as a head."""
        rotary = cls(options.head_width, base=options.rotary_base)
        if options.rotary_factor != 1:
            rotary.sinusoids.rates.copy_(slowed(rotary.sinusoids.rates, options))
        return rotary

    def forward(
        self, heads: Float[Tensor, "batch heads time head_dim"], *, start: int = 0
    ) -> Float[Tensor, "batch heads time head_dim"]:
        """Return the vectors rotated by the angles of the positions from `start` on."""
        waves = self.sinusoids.table.on(heads, first=start, length=heads.shape[2])
        sine, cosine = waves.chunk(2, dim=-1)  # [time, head_dim / 2]
        first, second = heads.chunk(2, dim=-1)
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)

    def agreement(self, length: int, *, head_dim: int) -> Float[Tensor, "{length} waves"]:
        """Return the cosine of the angle between equal vectors, for every distance and wave."""
        return torch.cos(torch.arange(length)[:, None] * self.sinusoids.rates)


def slowed(rates: Float[Tensor, "waves"], options: PositionOptions) -> Float[Tensor, "waves"]:
    """Return rates for longer texts: slow waves become slower still, as in Llama 3.1."""
    fits = options.rotary_length * rates / (2 * math.pi)  # how often a wave fits the old length
    share = (fits - options.rotary_low) / (options.rotary_high - options.rotary_low)
    return torch.lerp(rates / options.rotary_factor, rates, share.clamp(0, 1))


def alibi_slopes(heads: int) -> Float[Tensor, "{heads}"]:
    """Return how steeply each head's scores fall with distance (Press et al. 2022, section 3).

    For 2^n heads they are 2^(-8/h), 2^(-16/h), ...; other numbers take every other slope of the
    next power of two to fill up, as the authors do.
    """
    whole = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (head + 1) / whole) for head in range(whole)]
    finer = [2 ** (-8 * (head + 1) / (2 * whole)) for head in range(2 * whole)]
    return torch.tensor(slopes + finer[0::2][: heads - whole])


class Alibi(DistanceBias):
    """-m_h |i - j| for head h: the farther, the lower the score (Press et al. 2022, section 3)."""

    def __init__(self, heads: int):
        super().__init__()
        self.slopes: Tensor
        self.register_buffer("slopes", alibi_slopes(heads), persistent=False)

    @classmethod
    def build(cls, options: PositionOptions) -> Alibi:
        """Return a slope for each head."""
        return cls(options.heads)

    def forward(
        self, distances: Int[Tensor, "target source"], *, dtype: torch.dtype
    ) -> Float[Tensor, "heads target source"]:
        """Return the bias of every pair."""
        away = distances.abs().to(dtype)
        return -self.slopes.to(away)[:, None, None] * away


class BucketedBias(DistanceBias):
    """A learned number for each head and bucket of distances (Raffel et al. 2020, section 2.1).

    Half of the buckets hold one near distance each, the others ever more up to `reach`; all that is
    farther shares the last. A decoder looks back only, so all its buckets are for that side.
    """

    def __init__(self, heads: int, *, buckets: int = 32, reach: int = 128, causal: bool = False):
        super().__init__()
        self.buckets = buckets
        self.reach = reach
        self.causal = causal
        self.table = nn.Parameter(torch.empty(buckets, heads))
        nn.init.normal_(self.table, std=heads**-0.5)

    @classmethod
    def build(cls, options: PositionOptions) -> BucketedBias:
        """Return a number for each bucket and head."""
        buckets, reach = options.buckets, options.bucket_reach
        return cls(options.heads, buckets=buckets, reach=reach, causal=options.causal)

    def forward(
        self, distances: Int[Tensor, "target source"], *, dtype: torch.dtype
    ) -> Float[Tensor, "heads target source"]:
        """Return the bias of every pair."""
        return self.table[self.bucket(distances)].permute(2, 0, 1).to(dtype)

    def bucket(self, distances: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        """Return the bucket of each distance."""
        buckets = self.buckets if self.causal else self.buckets // 2
        away = (-distances).clamp(min=0) if self.causal else distances.abs()
        exact = buckets // 2
        growth = torch.log(away.clamp(min=1).float() / exact) / math.log(self.reach / exact)
        wide = (exact + (growth * (buckets - exact)).long()).clamp(max=buckets - 1)
        found = torch.where(away < exact, away, wide)
        return found if self.causal else found + buckets * (distances > 0)


POSITIONS: dict[str, type[Positions]] = {
    "sinusoidal": Sinusoids,
    "learned": LearnedPositions,
    "relative": RelativePositions,
    "rotary": Rotary,
    "segment": SegmentPositions,
    "alibi": Alibi,
    "bucketed": BucketedBias,
    "none": NoPositions,
}
