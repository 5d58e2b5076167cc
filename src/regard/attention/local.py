"""Attention to a window around each position, at a cost that grows only with the length."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from regard.attention.kernels import Drop
from regard.attention.sight import penalties_of
from regard.base.results import Attended
from regard.base.shapes import Bool, Float, Tensor


def local_attention(
    query: Float[Tensor, "batch heads time head_dim"],
    keys: Float[Tensor, "batch heads time head_dim"],
    values: Float[Tensor, "batch heads time head_dim"],
    *,
    window: int,
    causal: bool,
    real: Bool[Tensor, "batch time"] | None = None,
    dropout: Drop | None = None,
) -> Attended:
    """Return the context of keys at most `window` positions away (Beltagy et al. 2020, 3.1).

    The sequence is cut into blocks of `window` queries; each block looks at its own keys and those
    of the blocks beside it, and a mask removes what is too far.
    """
    batch, _, time, head_dim = query.shape
    blocks = math.ceil(time / window)
    missing = blocks * window - time
    if real is None:
        real = torch.ones(batch, time, dtype=torch.bool, device=query.device)
    after = 0 if causal else window
    asked = torch.unflatten(F.pad(query, (0, 0, 0, missing)), 2, (blocks, window))
    seen_keys, seen_values = (
        _surroundings(part, window=window, missing=missing, after=after) for part in (keys, values)
    )  # [batch, heads, blocks, width, head_dim]
    seen_real = F.pad(real, (window, missing + after)).unfold(1, 2 * window + after, window)
    allowed = _near(window, 2 * window + after, causal=causal, device=query.device)
    mask = allowed & seen_real[:, :, None, :]  # [batch, blocks, window, width]
    scores = (
        asked / math.sqrt(head_dim) @ seen_keys.transpose(-1, -2)
    )  # [batch, heads, blocks, window, width]
    weights = torch.softmax(scores + penalties_of(mask, dtype=scores.dtype)[:, None], dim=-1)
    context = (weights if dropout is None else dropout(weights)) @ seen_values
    return Attended(context.flatten(2, 3)[:, :, :time], None)


def _surroundings(part: Tensor, *, window: int, missing: int, after: int) -> Tensor:
    """Return for each block the keys (or values) of itself and its neighbours."""
    padded = F.pad(part, (0, 0, window, missing + after))
    return padded.unfold(2, 2 * window + after, window).transpose(-1, -2)


def _near(
    window: int, width: int, *, causal: bool, device: torch.device
) -> Bool[Tensor, "{window} {width}"]:
    """Return which of a block's surroundings each of its queries may see."""
    places = torch.arange(width, device=device)[None, :] - window
    distances = places - torch.arange(window, device=device)[:, None]
    near = distances.abs() <= window
    return near & (distances <= 0) if causal else near
