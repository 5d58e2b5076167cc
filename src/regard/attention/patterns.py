"""Self-attention that leaves pairs out: sparse patterns, and spans that heads learn.

A pattern says twice which keys a query sees: as penalties for all pairs, with which attention is
computed step by step, and as a kernel that never makes the scores of the others. Both agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from regard.attention.efficient import block_distances, local_attention, surroundings
from regard.attention.masks import Visibility, forbidden, penalties_of
from regard.base.results import Attended
from regard.base.shapes import Bool, Float, Tensor
from regard.compute.kernels import Drop, plain_attention


class Pattern(nn.Module):
    """Which pairs of queries and keys count; subclasses say it for all pairs, and more cheaply.

    It sees keys from the first position on: queries are the last positions that the keys cover.
    """

    keys_are_queries: ClassVar[bool] = False
    """Whether a key is the query of its position, made a unit vector."""
    needs_plain_scores: ClassVar[bool] = True
    """Whether nothing else may be added to the scores of pairs."""

    def require(self, *, plain: bool, by_pair: bool) -> None:
        """Refuse other scores than the scaled dot product, and positions that change pairs."""
        if not plain:
            raise ValueError("a pattern of pairs goes with softmax and scaled dot products alone")
        if self.needs_plain_scores and by_pair:
            raise ValueError("relative positions do not go with a pattern of pairs")

    @property
    def note(self) -> str:
        """What a summary says of it."""
        return type(self).__name__

    def penalties(
        self,
        keys: Float[Tensor, "batch heads source head_dim"],
        visibility: Visibility,
    ) -> Float[Tensor, "..."]:
        """Return what is added to scores, broadcast over [batch, heads, target, source]."""
        raise TypeError(f"{type(self).__name__} has no penalties")

    def attend(
        self,
        query: Float[Tensor, "batch heads time head_dim"],
        keys: Float[Tensor, "batch heads time head_dim"],
        values: Float[Tensor, "batch heads time head_dim"],
        visibility: Visibility,
        dropout: Drop | None = None,
    ) -> Attended:
        """Return the context of a whole sequence, without the scores of pairs that do not count."""
        raise TypeError(f"{type(self).__name__} has no kernel")


class _Blocks(NamedTuple):
    """A sequence in blocks of one length; those of heads are split into them."""

    queries: Float[Tensor, "batch heads blocks stride head_dim"]
    keys: Float[Tensor, "batch heads blocks stride head_dim"]
    values: Float[Tensor, "batch heads blocks stride head_dim"]
    real: Bool[Tensor, "batch blocks stride"]


class _Keys(NamedTuple):
    """Some of the keys that each query of a block sees: scores, mask, and their part of context."""

    scores: Float[Tensor, "batch heads blocks stride keys"]
    mask: Bool[Tensor, "batch blocks stride keys"]
    context: Callable[[Tensor], Tensor]


class SparsePattern(Pattern):
    """The factorised patterns of Child et al. (2019, section 4.3), as one head that sees both.

    "strided": the last l positions and every l-th before them, A_i = {j: i - j <= l or
    (i - j) mod l = 0}. "fixed": one's own block of l and the last c positions of every other,
    A_i = {j: floor(j / l) = floor(i / l) or j mod l >= l - c}. Without a causal mask they look both
    ways. With l near the root of the length n, the scores are of the order of n sqrt(n).
    """

    def __init__(self, kind: str, *, stride: int, summary: int = 1):
        super().__init__()
        if kind not in ("strided", "fixed"):
            raise ValueError(f'pattern ("{kind}") must be "strided" or "fixed"')
        if not 1 <= summary <= stride:
            raise ValueError(f"summary ({summary}) must be between 1 and stride ({stride})")
        self.kind = kind
        self.stride = stride
        self.summary = summary

    @property
    def note(self) -> str:
        """What a summary says of it."""
        return f"{self.kind} pattern of {self.stride}"

    def penalties(self, keys: Tensor, visibility: Visibility) -> Tensor:
        """Return the penalties of all pairs that do not count."""
        if self.kind == "strided":
            away = visibility.distances.abs()
            seen = (away <= self.stride) | (away % self.stride == 0)
        else:
            places = torch.arange(visibility.source, device=keys.device)
            blocks = places // self.stride
            own = blocks[visibility.source - visibility.target :, None] == blocks
            seen = own | (places % self.stride >= self.stride - self.summary)
        return penalties_of(seen, dtype=keys.dtype)

    def attend(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        visibility: Visibility,
        dropout: Drop | None = None,
    ) -> Attended:
        """Return the context: in blocks of l queries, near keys and distant ones side by side."""
        batch, _, time, head_dim = query.shape
        stride = self.stride
        missing = -time % stride
        real = visibility.real
        if real is None:
            real = torch.ones(batch, time, dtype=torch.bool, device=query.device)
        q, k, v = (
            torch.unflatten(F.pad(part, (0, 0, 0, missing)), 2, (-1, stride))
            for part in (query / math.sqrt(head_dim), keys, values)
        )
        blocks = _Blocks(q, k, v, torch.unflatten(F.pad(real, (0, missing)), 1, (-1, stride)))
        find = self._strided if self.kind == "strided" else self._fixed
        parts = find(blocks, causal=visibility.causal)
        mask = torch.cat([part.mask for part in parts], dim=-1)[:, None]
        scores = torch.cat([part.scores for part in parts], dim=-1)
        weights = torch.softmax(scores + penalties_of(mask, dtype=scores.dtype), dim=-1)
        used = weights if dropout is None else dropout(weights)
        split = torch.split(used, [part.scores.shape[-1] for part in parts], dim=-1)
        contexts = [part.context(some) for part, some in zip(parts, split, strict=True)]
        return Attended((contexts[0] + contexts[1]).flatten(2, 3)[:, :, :time], None)

    def _strided(self, blocks: _Blocks, *, causal: bool) -> tuple[_Keys, _Keys]:
        """Return the last positions, and those l, 2l, ... away."""
        window, after = self.stride, 0 if causal else self.stride
        keys, values = (
            surroundings(part.flatten(2, 3), window=window, missing=0, after=after)
            for part in (blocks.keys, blocks.values)
        )
        width = 2 * window + after
        real = F.pad(blocks.real.flatten(1), (window, after)).unfold(1, width, window)
        distances = block_distances(window, width, device=keys.device)
        near = distances.abs() < window
        if causal:
            near &= distances <= 0
        # Positions of one residue, block by block: [batch, heads, stride, blocks, head_dim]
        q, k, v = (part.transpose(2, 3) for part in blocks[:3])
        far = _others(q.shape[3], causal=causal, device=q.device)
        return (
            _Keys(blocks.queries @ keys.mT, near & real[:, :, None], lambda w: w @ values),
            _Keys(
                (q @ k.mT).transpose(2, 3),
                far[:, None] & blocks.real.mT[:, None],
                lambda w: (w.transpose(2, 3) @ v).transpose(2, 3),
            ),
        )

    def _fixed(self, blocks: _Blocks, *, causal: bool) -> tuple[_Keys, _Keys]:
        """Return the own block, and the ends of the others."""
        queries, keys, values, real = blocks
        own = torch.ones(self.stride, self.stride, dtype=torch.bool, device=keys.device)
        if causal:
            own = own.tril()
        ends = slice(self.stride - self.summary, None)
        k, v = (part[:, :, :, ends].flatten(2, 3)[:, :, None] for part in (keys, values))
        far = _others(keys.shape[2], causal=causal, device=keys.device)
        far = far.repeat_interleave(self.summary, dim=1)[:, None]  # [blocks, 1, ends]
        allowed = far & real[:, :, ends].flatten(1)[:, None, None]
        return (
            _Keys(queries @ keys.mT, own & real[:, :, None], lambda w: w @ values),
            _Keys(queries @ k.mT, allowed.expand(-1, -1, self.stride, -1), lambda w: w @ v),
        )


def _others(blocks: int, *, causal: bool, device: torch.device) -> Bool[Tensor, "blocks blocks"]:
    """Return which other blocks each block sees: those before it, or all."""
    every = torch.ones(blocks, blocks, dtype=torch.bool, device=device)
    own = torch.eye(blocks, dtype=torch.bool, device=device)
    return every.tril(-1) if causal else every & ~own


class AdaptiveSpan(Pattern):
    """Each head learns how far it looks: a_ij = m(i - j) exp(e_ij) / sum_k m(i - k) exp(e_ik).

    m(x) = min(max((R + z - x) / R, 0), 1) falls from 1 to 0 over the ramp R, behind the span z that
    the head learns, 0 < z < S (Sukhbaatar et al. 2019, eq. 1-4); here z = S sigmoid(p).
    """

    needs_plain_scores = False
    START = -2.0  # p of a fresh head: a span of an eighth of the longest

    def __init__(self, heads: int, *, most: int, ramp: int = 16, cost: float = 0.0):
        """`cost` is what a position of mean span costs, in nats a token."""
        super().__init__()
        self.most = most
        self.ramp = ramp
        self.weight = cost
        self.shares = nn.Parameter(torch.full((heads,), self.START))

    @property
    def note(self) -> str:
        """What a summary says of it: the spans themselves would depend on the training."""
        return f"learned spans up to {self.most}"

    @property
    def spans(self) -> Float[Tensor, "heads"]:
        """The span z of each head."""
        return self.most * torch.sigmoid(self.shares)

    @property
    def cost(self) -> Float[Tensor, ""]:
        """lambda / M sum_i z_i, which keeps spans short (Sukhbaatar et al. 2019, eq. 5)."""
        return self.weight * self.spans.mean()

    def bias(self, distances: Tensor, *, dtype: torch.dtype) -> Float[Tensor, "heads ..."]:
        """Return log m for each head and distance; what is beyond a span gets no weight."""
        spans = self.spans.to(dtype)[:, None, None]
        soft = ((self.ramp + spans - distances.abs()) / self.ramp).clamp(0, 1)
        inside = soft > 0
        logs = torch.where(inside, soft, torch.ones_like(soft)).log()
        return logs.masked_fill(~inside, forbidden(dtype))

    def penalties(self, keys: Tensor, visibility: Visibility) -> Tensor:
        """Return log m for all pairs."""
        return self.bias(visibility.distances, dtype=keys.dtype)

    def attend(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        visibility: Visibility,
        dropout: Drop | None = None,
    ) -> Attended:
        """Return the context; no scores are made beyond the longest span of all heads."""
        farthest = math.ceil(float(self.spans.detach().max()) + self.ramp)
        if visibility.source <= 2 * farthest or visibility.distance_bias is not None:
            penalties = self.penalties(keys, visibility)
            if visibility.penalties is not None:
                penalties = penalties + visibility.penalties
            found = plain_attention(query, keys, values, penalties=penalties, dropout=dropout)
            return Attended(found.context, None)
        return local_attention(
            query,
            keys,
            values,
            window=farthest,
            causal=visibility.causal,
            real=visibility.real,
            dropout=dropout,
            bias=self.bias,
        )
