"""The ways to compute softmax(q k^T / sqrt(d)) v; which is fastest depends on the shape.

All take queries, keys and values as [batch, heads, time, head_dim] and give the same result.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

from regard.base.results import Attended
from regard.base.shapes import Float, Tensor
from regard.compute.device import on_host, uses_hand_kernels
from regard.compute.dropout import kept_and_scale

Drop = Callable[[Tensor], Tensor]
# Sees a value by its name, and returns what takes its place.
See = Callable[[str, Tensor], Tensor]


@runtime_checkable
class RelativeTerms(Protocol):
    """What relative positions add to the scores and to the context (Shaw et al. 2018)."""

    def scores(self, query: Tensor, distances: Tensor) -> Tensor:
        """Return q_i a^K_ij."""
        ...

    def context(self, weights: Tensor, distances: Tensor) -> Tensor:
        """Return sum_j alpha_ij a^V_ij."""
        ...


def plain_attention(
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch heads source head_dim"],
    values: Float[Tensor, "batch heads source head_dim"],
    *,
    penalties: Tensor | None = None,
    dropout: Drop | None = None,
    relative: tuple[RelativeTerms, Tensor] | None = None,
    score: Callable[[Tensor, Tensor], Tensor] | None = None,
    see: See | None = None,
) -> Attended:
    """Return the context and the weights step by step, which is fastest for short sentences.

    `score` takes the place of q k^T / sqrt(d); the other kernels know none but that product.
    With relative positions (and the distances), e_ij = q_i (k_j + a^K_ij) / sqrt(d) (Shaw et al.
    2018, eq. 4). What `see` returns takes the place of each value that it is shown.
    """
    batch, heads, target, head_dim = query.shape
    if see is not None:
        query, keys, values = see("queries", query), see("keys", keys), see("values", values)
    if score is None:
        scores = torch.bmm(
            (query / math.sqrt(head_dim)).flatten(0, 1), keys.flatten(0, 1).transpose(1, 2)
        ).view(batch, heads, target, -1)
    else:
        scores = score(query, keys)
    if relative is not None:
        terms, distances = relative
        scores = scores + terms.scores(query / math.sqrt(head_dim), distances)
    if see is not None:
        scores = see("scores", scores)
    if penalties is not None:
        scores = scores.add_(penalties) if score is None else scores + penalties
        scores = scores if see is None else see("masked", scores)
    weights = torch.softmax(scores, dim=-1)
    if see is not None:
        weights = see("weights", weights)
    used = weights if dropout is None else dropout(weights)
    context = torch.bmm(used.flatten(0, 1), values.flatten(0, 1)).view(query.shape)
    if relative is not None:
        context = context + terms.context(used, distances)
    return Attended(context if see is None else see("context", context), weights)


# The number of keys from which torch's fused kernel is faster on a CPU than batched products:
# without a gradient, and with one.
LONG = 32
LONG_WITH_GRADIENT = 128


def fused_pays(
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch groups source head_dim"],
    *,
    drops: bool,
) -> bool:
    """Return whether torch's fused kernel pays: always, but on a processor for long inputs.

    There its dropout is slow, and for a single query it never pays.
    """
    if not on_host(query):
        return True
    least = LONG_WITH_GRADIENT if torch.is_grad_enabled() else LONG
    return not drops and query.shape[2] > 1 and keys.shape[2] >= least


def fused_attention(
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch groups source head_dim"],
    values: Float[Tensor, "batch groups source head_dim"],
    *,
    penalties: Tensor | None = None,
    causal_only: bool = False,
    dropout: float = 0.0,
) -> Attended:
    """Return the context by torch's fused kernel, which never holds all the weights.

    `causal_only` says that the penalties only hide the future, which the kernel can skip.
    """
    context = F.scaled_dot_product_attention(
        query,
        keys,
        values,
        attn_mask=None if causal_only else _four_axes(penalties),
        is_causal=causal_only,
        dropout_p=dropout,
        enable_gqa=query.shape[1] != keys.shape[1],
    )
    return Attended(context, None)


def _four_axes(penalties: Tensor | None) -> Tensor | None:
    if penalties is None:
        return None
    return penalties.view((1,) * (4 - penalties.dim()) + penalties.shape)


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


def split_heads(
    projected: Float[Tensor, "batch time width"], *, heads: tuple[int, ...]
) -> tuple[Float[Tensor, "batch heads time head_dim"], ...]:
    """Return the parts (queries, keys, values), each split into its number of heads."""
    if not uses_hand_kernels(projected):
        return _split(projected, heads)
    found: tuple[Tensor, ...] = _SplitHeads.apply(  # type: ignore[no-untyped-call]
        projected, heads
    )
    return found


def _split(projected: Tensor, heads: tuple[int, ...]) -> tuple[Tensor, ...]:
    batch, time, width = projected.shape
    head_dim = width // sum(heads)
    if len(set(heads)) == 1:  # one copy for all parts
        split = projected.view(batch, time, len(heads), heads[0], head_dim)
        return split.permute(2, 0, 3, 1, 4).contiguous().unbind(0)
    parts = torch.split(projected.view(batch, time, sum(heads), head_dim), list(heads), dim=2)
    return tuple(part.transpose(1, 2).contiguous() for part in parts)


class _SplitHeads(torch.autograd.Function):
    """One copy into the order that batched products want, and one back; autograd would make two."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, heads: tuple[int, ...]) -> tuple[Tensor, ...]:
        batch, time, width = projected.shape
        ctx.shape = (batch, time, sum(heads), width // sum(heads))
        ctx.heads = heads
        ctx.set_materialize_grads(False)
        return _split(projected, heads)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None]:
        given = [part for part in gradients if part is not None]
        if not given:
            return None, None
        joined = given[0].new_empty(ctx.shape)
        places = torch.split(joined, list(ctx.heads), dim=2)
        for place, gradient in zip(places, gradients, strict=True):
            if gradient is None:
                place.zero_()
            else:
                place.transpose(1, 2).copy_(gradient)
        return joined.flatten(2), None


def group_queries(
    query: Float[Tensor, "batch heads target head_dim"], *, groups: int
) -> Float[Tensor, "batch {groups} rows head_dim"]:
    """Return the queries of all heads of a group one below the other (Ainslie et al. 2023).

    So the heads of a group share its keys and values, which are never copied.
    """
    batch, _, _, head_dim = query.shape
    return query.reshape(batch, groups, -1, head_dim)


def group_penalties(
    penalties: Tensor | None, *, heads: int, groups: int, target: int
) -> Tensor | None:
    """Return what is added to the scores of queries that `group_queries` has put together."""
    if penalties is None:
        return None
    penalties = penalties.view((1,) * (4 - penalties.dim()) + penalties.shape)
    batch, by_head, by_target, source = penalties.shape
    if by_head == 1 and by_target == 1:
        return penalties
    every = penalties.expand(batch, heads, target, source)
    if by_head == 1:  # the same for all groups
        return every[:, : heads // groups].reshape(batch, 1, -1, source)
    return every.reshape(batch, groups, -1, source)
