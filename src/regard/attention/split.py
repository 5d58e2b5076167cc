"""Cutting a projection into parts and heads, with the gradient written straight into its place."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from regard.attention.by_hand import by_hand
from regard.base.shapes import Float, Tensor


def split_heads(
    projected: Float[Tensor, "batch time width"], *, parts: int, heads: int
) -> tuple[Float[Tensor, "batch heads time head_dim"], ...]:
    """Return the parts (queries, keys, values), each split into heads."""
    if not by_hand(projected):
        return _split(projected, parts, heads)
    found: tuple[Tensor, ...] = _SplitHeads.apply(  # type: ignore[no-untyped-call]
        projected, parts, heads
    )
    return found


def _split(projected: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    batch, time, width = projected.shape
    split = projected.view(batch, time, parts, heads, width // (parts * heads))
    return split.permute(2, 0, 3, 1, 4).contiguous().unbind(0)


class _SplitHeads(torch.autograd.Function):
    """One copy into the order that batched products want, and one back; autograd would make two."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
        batch, time, width = projected.shape
        ctx.shape = (batch, time, parts, heads, width // (parts * heads))
        ctx.set_materialize_grads(False)
        return _split(projected, parts, heads)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None, None]:
        given = [part for part in gradients if part is not None]
        if not given:
            return None, None, None
        joined = given[0].new_empty(ctx.shape)
        for number, gradient in enumerate(gradients):
            place = joined[:, :, number].transpose(1, 2)
            place.zero_() if gradient is None else place.copy_(gradient)
        return joined.flatten(2), None, None
