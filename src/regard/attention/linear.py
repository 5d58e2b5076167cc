"""Linear-cost attention: a kernel instead of the softmax, so that sums over keys can be carried on.

weights_ij = phi(q_i) . phi(k_j) / sum_l phi(q_i) . phi(k_l), with phi(x) = elu(x) + 1
(Katharopoulos et al. 2020, eq. 4-7).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.attention.sight import Sight
from regard.base.results import Attended
from regard.base.shapes import Float, Tensor

CHUNK = 64  # positions computed at once, with all their pairs


class LinearState(NamedTuple):
    """All that is left of the positions read so far: its size does not depend on how many."""

    products: Float[Tensor, "batch heads head_dim head_dim"]  # S = sum_j phi(k_j) v_j^T
    totals: Float[Tensor, "batch heads head_dim"]  # z = sum_j phi(k_j)


def features(heads: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return phi(x) = elu(x) + 1, which is positive."""
    return F.elu(heads) + 1


def linear_attention(
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch heads source head_dim"],
    values: Float[Tensor, "batch heads source head_dim"],
    *,
    sight: Sight,
) -> Attended:
    """Return the context of all keys that are real: two products of small matrices."""
    asked, offered = features(query), _without_padding(features(keys), sight)
    products = offered.transpose(-1, -2) @ values
    totals = offered.sum(dim=2)
    return Attended(_normalised(asked @ products, asked @ totals[..., None]), None)


def causal_linear_attention(
    query: Float[Tensor, "batch heads time head_dim"],
    keys: Float[Tensor, "batch heads time head_dim"],
    values: Float[Tensor, "batch heads time head_dim"],
    *,
    state: LinearState | None,
) -> tuple[Attended, LinearState]:
    """Return the context of the positions so far, chunk by chunk, and the sums to go on with."""
    batch, heads, _, head_dim = query.shape
    products, totals = state or LinearState(
        query.new_zeros(batch, heads, head_dim, head_dim), query.new_zeros(batch, heads, head_dim)
    )
    contexts = []
    chunks = (torch.split(part, CHUNK, 2) for part in (features(query), features(keys), values))
    for asked, offered, value in zip(*chunks, strict=True):
        inside = (asked @ offered.transpose(-1, -2)).tril()
        upper = asked @ products + inside @ value
        lower = asked @ totals[..., None] + inside.sum(-1, keepdim=True)
        contexts.append(_normalised(upper, lower))
        products = products + offered.transpose(-1, -2) @ value
        totals = totals + offered.sum(dim=2)
    return Attended(torch.cat(contexts, dim=2), None), LinearState(products, totals)


def explicit_linear_attention(
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch heads source head_dim"],
    values: Float[Tensor, "batch heads source head_dim"],
    *,
    sight: Sight,
) -> Attended:
    """Return context and weights at quadratic cost: to look at, and to hold the others against."""
    products = features(query) @ _without_padding(features(keys), sight).transpose(-1, -2)
    if sight.causal:
        products = products * sight.near
    weights = _normalised(products, products.sum(-1, keepdim=True))
    return Attended(weights @ values, weights)


def _without_padding(offered: Tensor, sight: Sight) -> Tensor:
    return offered if sight.real is None else offered * sight.real[:, None, :, None]


def _normalised(upper: Tensor, lower: Tensor) -> Tensor:
    """Divide; where nothing may be attended to, the result is zero and not NaN."""
    return upper / lower.clamp_min(torch.finfo(lower.dtype).tiny)
