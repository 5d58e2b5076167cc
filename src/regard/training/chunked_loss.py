"""Projection onto the vocabulary and loss in one, a chunk of rows at a time.

The gradient is computed on the way, so the logits of a whole batch are never held: with a small
model they are by far the largest thing in memory, and most of the work.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.linear import add_product, product, transposed
from regard.training.loss import LossSum

ROWS = 512  # logits of so many positions are held at once


def chunked_token_loss(
    features: Float[Tensor, "batch target model_dim"],
    *,
    expected: Int[Tensor, "batch target"],
    mask: Bool[Tensor, "batch target"],
    weight: Float[Tensor, "vocab model_dim"],
    bias: Float[Tensor, "vocab"] | None = None,
    smoothing: float = 0.0,
    rows: int = ROWS,
) -> LossSum:
    """Return what `token_loss` returns for the projection x W^T + b, without holding all logits."""
    with torch.autocast(features.device.type, enabled=False):  # sums need all their bits
        objective, nats = _ChunkedLoss.apply(  # type: ignore[no-untyped-call]
            features[mask].to(weight.dtype), weight, bias, expected[mask], smoothing, rows
        )
    return LossSum(objective, nats)


class _ChunkedLoss(torch.autograd.Function):
    """sum_i (1 - s) (lse_i - x_iy) + s (lse_i - mean_v x_iv), with x = f W^T + b.

    Its derivative by the logits is p - (1 - s) [v = y] - s / V. The last term is the same for all
    positions, so it is added to the results and not to the logits.
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        expected: Tensor,
        smoothing: float,
        rows: int,
    ) -> tuple[Tensor, Tensor]:
        wanted = ctx.needs_input_grad
        by_features = torch.empty_like(features) if wanted[0] else None
        by_columns = weight.new_zeros(weight.T.shape) if wanted[1] else None  # W's gradient, turned
        by_bias = torch.zeros_like(bias) if bias is not None and wanted[2] else None
        vocab, columns = len(weight), transposed(weight)
        weight_mean = weight.mean(dim=0)
        bias_mean = 0.0 if bias is None else bias.mean()
        objective, nats = features.new_zeros(()), features.new_zeros(())
        held = features.new_empty(min(rows, len(features)), vocab)
        for start in range(0, len(features), rows):
            chunk, symbols = features[start : start + rows], expected[start : start + rows, None]
            p = product(chunk, columns, room=held[: len(chunk)])
            if bias is not None:
                p += bias
            logits = p.gather(1, symbols).squeeze(1)
            torch.softmax(p, dim=-1, out=p)  # in place: from here on the logits are gone
            losses = _negative_logs(p, chunk, weight, bias, symbols)
            nats += losses.sum()
            if smoothing:
                lse = losses + logits
                means = chunk @ weight_mean + bias_mean
                objective += ((1 - smoothing) * losses + smoothing * (lse - means)).sum()
            if not any(wanted):
                continue
            p.scatter_add_(1, symbols, p.new_full(symbols.shape, smoothing - 1))
            if by_features is not None:
                by_features[start : start + rows] = product(p, weight)
            if by_columns is not None:
                add_product(by_columns, chunk.T, p)
            if by_bias is not None:
                by_bias += p.sum(dim=0)
        if smoothing:
            if by_features is not None:
                by_features -= smoothing * weight_mean
            if by_columns is not None:
                by_columns -= smoothing / vocab * features.sum(dim=0)[:, None]
            if by_bias is not None:
                by_bias -= smoothing * len(features) / vocab
        by_weight = None if by_columns is None else by_columns.T.contiguous()
        ctx.save_for_backward(by_features, by_weight, by_bias)
        ctx.mark_non_differentiable(nats)
        return (objective if smoothing else nats.clone()), nats

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if part is None else part * gradient for part in ctx.saved_tensors]
        return (*scaled, None, None, None)


def _negative_logs(
    probabilities: Tensor, features: Tensor, weight: Tensor, bias: Tensor | None, symbols: Tensor
) -> Tensor:
    """Return -log p(y) of each row; where p(y) is too small to be exact, from the logits again."""
    found = probabilities.gather(1, symbols).squeeze(1)
    losses = -found.log()
    vague = found < 1e-30
    if bool(vague.any()):
        logits = F.linear(features[vague], weight, bias)
        losses[vague] = logits.logsumexp(dim=-1) - logits.gather(1, symbols[vague]).squeeze(1)
    return losses
