"""The ways to compute softmax(q k^T / sqrt(d)) v; which is fastest depends on the shape.

All take queries, keys and values as [batch, heads, time, head_dim] and give the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from regard.attention.positions import RelativePositions
from regard.base.results import Attended
from regard.base.shapes import Float, Tensor

Drop = Callable[[Tensor], Tensor]


def plain_attention(
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch heads source head_dim"],
    values: Float[Tensor, "batch heads source head_dim"],
    *,
    penalties: Tensor | None = None,
    dropout: Drop | None = None,
    relative: RelativePositions | None = None,
    distances: Tensor | None = None,
) -> Attended:
    """Return the context and the weights, step by step: the fastest way for short sentences.

    With relative positions, e_ij = q_i (k_j + a^K_ij) / sqrt(d) (Shaw et al. 2018, eq. 4).
    """
    batch, heads, target, head_dim = query.shape
    scores = torch.bmm(
        (query / math.sqrt(head_dim)).flatten(0, 1), keys.flatten(0, 1).transpose(1, 2)
    ).view(batch, heads, target, -1)
    if relative is not None and distances is not None:
        scores = scores + relative.scores(query / math.sqrt(head_dim), distances)
    if penalties is not None:
        scores += penalties
    weights = torch.softmax(scores, dim=-1)
    used = weights if dropout is None else dropout(weights)
    context = torch.bmm(used.flatten(0, 1), values.flatten(0, 1)).view(query.shape)
    if relative is not None and distances is not None:
        context = context + relative.context(used, distances)
    return Attended(context, weights)


def fused_attention(
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch heads source head_dim"],
    values: Float[Tensor, "batch heads source head_dim"],
    *,
    penalties: Tensor | None = None,
    causal_only: bool = False,
) -> Attended:
    """Return the context by torch's fused kernel, which never holds all the weights.

    `causal_only` says that the penalties do nothing but hide the future: the kernel can skip it.
    """
    context = F.scaled_dot_product_attention(
        query,
        keys,
        values,
        attn_mask=None if causal_only else _four_axes(penalties),
        is_causal=causal_only,
    )
    return Attended(context, None)


def _four_axes(penalties: Tensor | None) -> Tensor | None:
    if penalties is None:
        return None
    return penalties.view((1,) * (4 - penalties.dim()) + penalties.shape)
