"""Attention among positions with the same hash (Kitaev et al. 2020, the Reformer, section 2)."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F

from regard.attention.masks import Visibility, forbidden
from regard.attention.patterns import Pattern
from regard.base.results import Attended
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.device import HOST
from regard.compute.kernels import Drop

SEED = 2020  # of the rotations, which are the same in every layer and every training


class _Hashed(NamedTuple):
    """Where each position is in one round of hashing: its bucket, and its chunk inside it."""

    bucket: Int[Tensor, "batch heads time"]
    rank: Int[Tensor, "batch heads time"]


class HashedPattern(Pattern):
    """o_i = sum over j in P_i of exp(q_i k_j - z(i, P_i)) v_j, P_i = {j <= i: h(j) = h(i)} (eq. 3).

    h(x) = argmax([x R; -x R]) with R a random matrix, anew for each round; P_i is the union of the
    rounds. A key is the query of its position, made a unit vector, and a position sees itself only
    if it sees no other. Long buckets are cut into chunks, and a query sees its own chunk and the
    one before it; here chunks begin with their bucket, so that no later position moves them.
    """

    keys_are_queries: ClassVar[bool] = True

    def __init__(self, head_dim: int, *, buckets: int = 8, rounds: int = 2, chunk: int = 32):
        super().__init__()
        if buckets < 2 or buckets % 2:
            raise ValueError(f"hash_buckets ({buckets}) must be even and at least 2")
        self.buckets = buckets
        self.rounds = rounds
        self.chunk = chunk
        generator = torch.Generator().manual_seed(SEED)
        shape = (rounds, head_dim, buckets // 2)
        self.rotations: Tensor
        drawn = torch.randn(shape, generator=generator, device=HOST)
        self.register_buffer("rotations", drawn, persistent=False)

    @property
    def note(self) -> str:
        """What a summary says of it."""
        return f"{self.rounds} hashes of {self.buckets} values"

    def hashes(
        self, keys: Float[Tensor, "batch heads time head_dim"]
    ) -> Int[Tensor, "rounds batch heads time"]:
        """Return the bucket of each position in each round."""
        turned = torch.einsum("bhtd,rdk->rbhtk", keys.detach(), self.rotations.to(keys.dtype))
        return torch.cat([turned, -turned], dim=-1).argmax(dim=-1)

    def places(self, keys: Tensor, real: Bool[Tensor, "batch time"] | None) -> list[_Hashed]:
        """Return bucket and rank of each position in each round; padding has a bucket of its own.

        The rank is how many earlier positions are in the same bucket.
        """
        found = []
        for bucket in self.hashes(keys):
            if real is not None:
                bucket = bucket.masked_fill(~real[:, None], self.buckets)
            order = bucket.sort(dim=-1, stable=True).indices
            ordered = bucket.gather(-1, order)
            first = torch.searchsorted(ordered.contiguous(), ordered.contiguous())
            ranks = torch.arange(bucket.shape[-1], device=bucket.device) - first
            found.append(_Hashed(bucket, torch.empty_like(ranks).scatter_(-1, order, ranks)))
        return found

    def penalties(self, keys: Tensor, visibility: Visibility) -> Tensor:
        """Return the penalties of all pairs that share no chunk in any round, and of oneself."""
        first = visibility.source - visibility.target
        seen = torch.zeros(
            *keys.shape[:2], visibility.target, visibility.source, dtype=torch.bool,
            device=keys.device,
        )  # fmt: skip
        for bucket, rank in self.places(keys, visibility.real):
            chunk = rank // self.chunk
            same = bucket[..., first:, None] == bucket[..., None, :]
            between = chunk[..., first:, None] - chunk[..., None, :]
            seen |= same & (between.abs() <= 1)
        lowest = forbidden(keys.dtype)
        penalties = torch.zeros(seen.shape, dtype=keys.dtype, device=keys.device)
        penalties.masked_fill_(visibility.distances == 0, lowest / 8)
        return penalties.masked_fill_(~seen, lowest)

    def attend(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        visibility: Visibility,
        dropout: Drop | None = None,
    ) -> Attended:
        """Return the context: each round sorts positions into chunks, which attend by themselves.

        The rounds are joined by o_i = sum_r exp(z(i, P_i^r) - z(i, P_i)) o_i^r, where a pair that
        is seen in N rounds counts for 1 / N in each (Kitaev et al. 2020, appendix A).
        """
        rounds = self.places(keys, visibility.real)
        found = [
            self._round(number, rounds, (query, keys, values), visibility, dropout)
            for number in range(len(rounds))
        ]
        totals = torch.stack([total for _, total in found])
        shares = torch.softmax(totals, dim=0)[..., None]
        contexts = torch.stack([context for context, _ in found])
        return Attended((shares * contexts).sum(dim=0), None)

    def _round(
        self,
        number: int,
        rounds: list[_Hashed],
        heads: tuple[Tensor, Tensor, Tensor],
        visibility: Visibility,
        dropout: Drop | None,
    ) -> tuple[Tensor, Tensor]:
        """Return the contexts of one round, and the logarithm of the sum of their weights."""
        query, _, _ = heads
        batch, count, time, head_dim = query.shape
        slots = self._slots(rounds[number])
        size = self.chunk * (int(slots.max()) // self.chunk + 1)
        tokens = torch.full((batch, count, size), -1, device=query.device)
        tokens.scatter_(-1, slots, torch.arange(time, device=query.device).expand_as(slots))
        places = tokens.clamp(min=0)
        index = places[..., None].expand(-1, -1, -1, head_dim)
        # [batch, heads, chunks, chunk, head_dim]
        q, k, v = (torch.unflatten(part.gather(2, index), 2, (-1, self.chunk)) for part in heads)
        asking = torch.unflatten(tokens, 2, (-1, self.chunk))
        neighbours = (0, 1) if visibility.causal else (0, 1, -1)
        k, v = (_with_neighbours(part, neighbours) for part in (k, v))
        asked = _with_neighbours(asking, neighbours, empty=-1)
        rows, columns = asking[..., None], asked[..., None, :]
        seen = self._seen(rounds, rows, columns)
        times = torch.stack(seen).sum(dim=0)
        allowed = seen[number] & (rows >= 0) & (columns >= 0)
        if visibility.causal:
            allowed &= columns <= rows
        if visibility.real is not None:
            real = visibility.real[:, None].expand(-1, count, -1)
            allowed &= real.gather(2, asked.clamp(min=0).flatten(2)).view(asked.shape)[..., None, :]
        lowest = forbidden(query.dtype)
        scores = q @ k.mT / math.sqrt(head_dim) - times.clamp(min=1).to(query.dtype).log()
        scores = scores + torch.zeros_like(scores).masked_fill_(rows == columns, lowest / 8)
        scores = scores.masked_fill(~allowed, lowest)
        totals = torch.logsumexp(scores, dim=-1, keepdim=True)
        weights = torch.exp(scores - totals)
        context = (weights if dropout is None else dropout(weights)) @ v
        back = slots[..., None].expand(-1, -1, -1, head_dim)
        return context.flatten(2, 3).gather(2, back), totals.flatten(2).gather(2, slots)

    def _slots(self, places: _Hashed) -> Int[Tensor, "batch heads time"]:
        """Return where each position stands when every bucket begins with a fresh chunk."""
        counts = F.one_hot(places.bucket, self.buckets + 1).sum(dim=-2)
        lengths = -(-counts // self.chunk) * self.chunk
        begins = lengths.cumsum(dim=-1) - lengths
        return begins.gather(-1, places.bucket) + places.rank

    def _seen(
        self, rounds: list[_Hashed], rows: Tensor, columns: Tensor
    ) -> list[Bool[Tensor, "batch heads chunks chunk keys"]]:
        """Return for each round which pairs share a bucket, in the same chunk or the next."""
        found = []
        for bucket, rank in rounds:
            chunk = rank // self.chunk
            same = _of_tokens(bucket, rows) == _of_tokens(bucket, columns)
            apart = (_of_tokens(chunk, rows) - _of_tokens(chunk, columns)).abs()
            found.append(same & (apart <= 1))
        return found


def _of_tokens(
    part: Int[Tensor, "batch heads time"], tokens: Int[Tensor, "batch heads *slots"]
) -> Int[Tensor, "batch heads *slots"]:
    """Return what the token at each slot has; an empty slot has what the first token has."""
    return part.gather(2, tokens.clamp(min=0).flatten(2)).view(tokens.shape)


def _with_neighbours(part: Tensor, neighbours: tuple[int, ...], *, empty: int = 0) -> Tensor:
    """Return for each chunk its own keys and those of the chunks before (1) and after it (-1)."""
    found = []
    for shift in neighbours:
        moved = part.roll(shift, dims=2)
        if shift:
            moved = moved.clone()
            moved[:, :, 0 if shift > 0 else -1] = empty
        found.append(moved)
    return torch.cat(found, dim=3)
