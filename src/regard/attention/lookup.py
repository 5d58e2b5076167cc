"""Attention over a memory with any of the scores: scores -> weights -> context."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from regard.attention.scores import AttentionScore
from regard.base.results import Attended
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.shared_product import shared, weighted_sum


def masked_softmax(
    scores: Float[Tensor, "*batch source"], mask: Bool[Tensor, "*mask_batch source"]
) -> Float[Tensor, "*batch source"]:
    """Return weights that sum to one over the positions that may be attended to.

    A row in which nothing may be attended to has weights of zero, never NaN.
    """
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
    return weights.masked_fill(~mask, 0.0)


def attend(
    scores: Float[Tensor, "batch *heads target source"],
    *,
    values: Float[Tensor, "batch source value_dim"],
    mask: Bool[Tensor, "batch source"],
    with_weights: bool = False,
) -> Attended:
    """Return c_i = sum_j alpha_ij h_j with alpha = softmax(e) (Bahdanau et al. 2015, eq. 5-6).

    Several heads share the width of the values among them; the weights returned are their mean.
    """
    if scores.dim() == 3:
        weights = masked_softmax(scores, mask[:, None, :])
        return Attended(weighted_sum(weights, values), weights if with_weights else None)
    weights = masked_softmax(scores, mask[:, None, None, :])
    batch, source, _ = values.shape
    split = values.view(batch, source, scores.shape[1], -1).transpose(1, 2)
    context = (weights @ split).transpose(1, 2).flatten(2)  # [batch, target, value_dim]
    return Attended(context, weights.mean(dim=1) if with_weights else None)


class Memory(NamedTuple):
    """What a lookup reads: prepared keys, values, and which of them are real."""

    keys: Float[Tensor, "batch source prepared_dim"]
    values: Float[Tensor, "batch source value_dim"]
    mask: Bool[Tensor, "batch source"]

    def select(self, rows: Int[Tensor, "chosen"]) -> Memory:
        """Return these rows of the batch, in this order."""
        return Memory(*(part.index_select(0, rows) for part in self))

    def as_shared(self) -> Memory:
        """Return the same memory for a loop of many lookups, which makes training faster."""
        return Memory(shared(self.keys), shared(self.values), self.mask)


class Lookup(nn.Module):
    """Attention over a memory that is prepared once and queried many times.

    alpha = softmax(e), c = sum_j alpha_j v_j (Bahdanau et al. 2015, eq. 5-6), with any score e.
    """

    def __init__(self, *, score: AttentionScore):
        super().__init__()
        self.score = score

    @property
    def context_dim(self) -> int:
        """The width of the context."""
        return self.score.value_dim

    def prepare(
        self, memory: Float[Tensor, "batch source key_dim"], mask: Bool[Tensor, "batch source"]
    ) -> Memory:
        """Do what depends on the memory alone."""
        return Memory(self.score.prepare(memory), self.score.values(memory), mask)

    def forward(
        self,
        query: Float[Tensor, "batch target query_dim"],
        memory: Memory,
        *,
        with_weights: bool = False,
    ) -> Attended:
        """Return a context for each query and, on request, the weights behind it."""
        scores = self.score(query, memory.keys)
        return attend(scores, values=memory.values, mask=memory.mask, with_weights=with_weights)


def coverage_penalty(
    weights: Float[Tensor, "batch target source"], mask: Bool[Tensor, "batch target"]
) -> Float[Tensor, ""]:
    """Return sum_ij min(alpha_ij, sum_{k<i} alpha_kj) over real targets (See et al. 2017, eq. 12).

    It is zero if no two target positions look at the same source position.
    """
    before = weights.cumsum(dim=1) - weights  # sum_{k<i} alpha_kj
    overlap = weights.minimum(before).sum(dim=2)  # [batch, target]
    return (overlap * mask).sum()
