"""Dropout from 16 random bits a number, many times cheaper than torch's on a CPU.

The bits come from a small fast generator that each call seeds from torch's generator, whose state
therefore decides all of them: a training resumes exactly.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import once_differentiable

from regard.base.shapes import Float, Int, Tensor
from regard.compute.device import on_host, uses_hand_kernels

LEVELS = 1 << 16


class Dropout(nn.Module):
    """Zeroes a share p of its input in training and scales the rest (Srivastava et al. 2014).

    The share is rounded to 1/65536, and the scale fits the rounded share: no bias is left.
    """

    def __init__(self, p: float = 0.0):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout ({p}) must be at least 0 and below 1")
        self.p = p

    def forward(self, inputs: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return the input, in training with a part of it zeroed."""
        if not self.training or self.p == 0:
            return inputs
        if not uses_hand_kernels(inputs):
            return F.dropout(inputs, self.p)
        dropped: Tensor = _Dropped.apply(inputs, None, self.p)  # type: ignore[no-untyped-call]
        return dropped

    def onto(
        self, residual: Float[Tensor, "*shape"], inputs: Float[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape"]:
        """Return residual + dropout(input), in one pass where that is possible."""
        if not self.training or self.p == 0 or not uses_hand_kernels(inputs):
            plain: Tensor = residual + self(inputs)
            return plain
        joined: Tensor = _Dropped.apply(inputs, residual, self.p)  # type: ignore[no-untyped-call]
        return joined

    def extra_repr(self) -> str:
        """Return the share, for printing."""
        return f"p={self.p}"


def random_bits(shape: torch.Size) -> Int[Tensor, "..."]:
    """Return uniform numbers of sixteen bits, from a seed that torch's generator gives."""
    seed = int(torch.randint(0, 2**63 - 1, (1,)))
    raw = np.random.SFC64(seed).random_raw((shape.numel() + 3) // 4)  # four numbers a word
    return torch.from_numpy(raw.view(np.int16)[: shape.numel()]).view(shape)


def kept_and_scale(like: Tensor, share: float) -> tuple[Tensor, float]:
    """Return 1 where a number is kept and 0 where not, and the scale that keeps the mean."""
    zeroed = round(share * LEVELS)
    kept = _kept(random_bits(like.shape), zeroed - LEVELS // 2, like=like)
    return kept, LEVELS / (LEVELS - zeroed)


class _Dropped(torch.autograd.Function):
    """residual + input * kept * scale, remembering the bits and not the mask."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, residual: Tensor | None, share: float) -> Tensor:
        zeroed = round(share * LEVELS)
        bits = random_bits(inputs.shape)
        ctx.save_for_backward(bits)
        ctx.threshold = zeroed - LEVELS // 2
        ctx.scale = LEVELS / (LEVELS - zeroed)
        ctx.adds = residual is not None
        kept = _kept(bits, ctx.threshold, like=inputs)
        if residual is None:
            return kept.mul_(inputs).mul_(ctx.scale)
        return torch.addcmul(residual, inputs, kept, value=ctx.scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:
        (bits,) = ctx.saved_tensors
        kept = _kept(bits, ctx.threshold, like=gradient)
        return kept.mul_(gradient).mul_(ctx.scale), gradient if ctx.adds else None, None


def _kept(bits: Tensor, threshold: int, *, like: Tensor) -> Tensor:
    """Return 1 where a number is kept and 0 where not, written straight as the type needed."""
    kept = torch.empty(bits.shape, dtype=like.dtype)
    return torch.ge(bits, threshold, out=kept)


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


def keep_mask(values: Tensor, dropout: float) -> Tensor:
    """Return which of these numbers dropout keeps, from 16 random bits for each."""
    shape = values.shape
    if not on_host(values):
        return torch.rand(shape, device=values.device) >= dropout
    count = shape.numel()  # a random float each would take five times as long
    bits = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    threshold = round(dropout * 65_536) - 32_768
    return (bits.view(torch.int16)[:count] >= threshold).view(shape)


def drop(values: Float[Tensor, "*shape"], dropout: float) -> Float[Tensor, "*shape"]:
    """Return the values with a share of them set to zero and the others scaled up."""
    if dropout == 0.0:
        return values
    kept = keep_mask(values, dropout).to(values.dtype)
    return values * kept.mul_(1.0 / (1.0 - dropout))
