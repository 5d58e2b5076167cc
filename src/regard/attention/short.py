"""Attention for short sentences, with its gradient by hand.

Three things are saved against the plain formula: the scale and the penalties are part of the first
product, the softmax and its gradient are computed in place, and no mask of dropout is remembered.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from regard.attention.dropout import kept_and_scale
from regard.base.shapes import Float, Tensor


def short_attention(
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch heads source head_dim"],
    values: Float[Tensor, "batch heads source head_dim"],
    *,
    penalties: Tensor | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "batch heads target head_dim"]:
    """Return the context that `plain_attention` finds, with a share of the weights dropped."""
    context: Tensor = _ShortAttention.apply(  # type: ignore[no-untyped-call]
        query, keys, values, penalties, dropout
    )
    return context


class _ShortAttention(torch.autograd.Function):
    """c = u v with u = m w, w = softmax(e), e = q k^T / sqrt(d) + penalties; m drops and scales.

    With G = dL/dc v^T, and because u_ij is m_ij w_ij, the gradient by the scores is
    dL/de_ij = u_ij G_ij - w_ij sum_k u_ik G_ik: the mask itself is not needed.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        penalties: Tensor | None,
        dropout: float,
    ) -> Tensor:
        batch, heads, target, head_dim = query.shape
        q, k, v = (part.flatten(0, 1) for part in (query, keys, values))
        ctx.scale = 1 / math.sqrt(head_dim)
        weights = query.new_empty(batch * heads, target, keys.shape[2])
        if penalties is not None:
            weights.view(batch, heads, target, -1).copy_(penalties)
        weights.baddbmm_(q, k.mT, beta=int(penalties is not None), alpha=ctx.scale)
        torch.softmax(weights, dim=-1, out=weights)
        used = weights
        if dropout:
            used, scale = kept_and_scale(weights, dropout)
            used.mul_(weights).mul_(scale)
        ctx.save_for_backward(q, k, v, weights, used if dropout else None)
        return torch.bmm(used, v).view(batch, heads, target, head_dim)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, dropped = ctx.saved_tensors
        used = weights if dropped is None else dropped
        by_context = gradient.flatten(0, 1)
        by_values = torch.bmm(used.mT, by_context)
        by_scores = torch.bmm(by_context, v.mT).mul_(used)
        by_scores.addcmul_(weights, by_scores.sum(dim=-1, keepdim=True), value=-1)
        by_query = _scaled_product(by_scores, k, ctx.scale)
        by_keys = _scaled_product(by_scores.mT, q, ctx.scale)
        heads = gradient.shape[:2]
        found = (part.view(*heads, *part.shape[1:]) for part in (by_query, by_keys, by_values))
        return (*found, None, None)


def _scaled_product(left: Tensor, right: Tensor, scale: float) -> Tensor:
    """Return scale * left @ right, in one pass."""
    product = left.new_empty(left.shape[0], left.shape[1], right.shape[2])
    return product.baddbmm_(left, right, beta=0, alpha=scale)
