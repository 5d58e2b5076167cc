"""Masks: boolean, True = may attend."""

from __future__ import annotations

import torch

from regard.base.shapes import Bool, Int, Tensor


def padding_mask(lengths: Int[Tensor, "batch"], *, size: int) -> Bool[Tensor, "batch {size}"]:
    """Return which of `size` positions hold a real symbol, for sequences of these lengths."""
    positions = torch.arange(size, device=lengths.device)
    return positions[None, :] < lengths[:, None]


def causal_mask(size: int) -> Bool[Tensor, "{size} {size}"]:
    """Return the mask by which position t attends to positions up to t: the future never leaks."""
    return torch.ones(size, size, dtype=torch.bool).tril()
