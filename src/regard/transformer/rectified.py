"""ReLU and dropout in one, inside feed-forward networks: the widest features of a Transformer."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from regard.attention.dropout import kept_and_scale
from regard.base.shapes import Float, Tensor


def rectified_dropout(inner: Float[Tensor, "*shape"], *, dropout: float) -> Float[Tensor, "*shape"]:
    """Return dropout(max(0, inner)) of the given share."""
    active: Tensor = _RectifiedDropout.apply(inner, dropout)  # type: ignore[no-untyped-call]
    return active


class _RectifiedDropout(torch.autograd.Function):
    """a = s m max(0, x) with m of zeros and ones; da/dx is s where a > 0, so a is all it keeps."""

    @staticmethod
    def forward(ctx: Any, inner: Tensor, dropout: float) -> Tensor:
        active, ctx.scale = kept_and_scale(inner, dropout)
        active.mul_(inner).clamp_(min=0).mul_(ctx.scale)
        ctx.save_for_backward(active)
        return active

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (active,) = ctx.saved_tensors
        passed: Tensor = torch.ops.aten.threshold_backward(gradient, active, 0)
        return passed.mul_(ctx.scale), None
