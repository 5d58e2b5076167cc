"""R-Drop: two passes with other dropout should predict the same (Liang et al. 2021)."""

from __future__ import annotations

from typing import Any

import torch

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.linear import add_product, product, transposed
from regard.training.chunked_loss import ROWS
from regard.training.loss import LossSum


def r_drop_loss(
    first: Float[Tensor, "batch target model_dim"],
    second: Float[Tensor, "batch target model_dim"],
    *,
    expected: Int[Tensor, "batch target"],
    mask: Bool[Tensor, "batch target"],
    weight: Float[Tensor, "vocab model_dim"],
    bias: Float[Tensor, "vocab"] | None = None,
    smoothing: float = 0.0,
    strength: float,
    rows: int = ROWS,
) -> LossSum:
    """Return 1/2 (L_1 + L_2) + a/4 (KL(p_1 || p_2) + KL(p_2 || p_1)), summed over positions.

    This is half of the paper's objective, so that it is as large as the loss of one pass. The
    gradient is computed on the way, so the logits of a whole batch are never held.
    """
    with torch.autocast(first.device.type, enabled=False):  # sums need all their bits
        objective, nats = _RDrop.apply(  # type: ignore[no-untyped-call]
            first[mask].to(weight.dtype),
            second[mask].to(weight.dtype),
            weight,
            bias,
            expected[mask],
            smoothing,
            strength / 4,
            rows,
        )
    return LossSum(objective, nats)


class _RDrop(torch.autograd.Function):
    """With p and q of the two passes and d = log p - log q, the distance is sum (p - q) d.

    Its derivative by the logits of p is p (d + 1 - KL(p || q)) - q, and so for q with -d. That of
    the losses is as in `chunked_loss`: what smoothing gives to all symbols is the same for all
    positions, so it is added to the results and not to the logits.
    """

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        expected: Tensor,
        smoothing: float,
        strength: float,
        rows: int,
    ) -> tuple[Tensor, Tensor]:
        passes = (first, second)
        by_passes = [torch.empty_like(one) for one in passes]
        by_columns = weight.new_zeros(weight.T.shape)  # the gradient of W, turned
        by_bias = None if bias is None else torch.zeros_like(bias)
        vocab, columns = len(weight), transposed(weight)
        weight_mean = weight.mean(dim=0)
        bias_mean = 0.0 if bias is None else bias.mean()
        objective, nats = first.new_zeros(()), first.new_zeros(())
        held = first.new_empty(4, min(rows, len(first)), vocab)
        for start in range(0, len(first), rows):
            chunks = [one[start : start + rows] for one in passes]
            symbols = expected[start : start + rows, None]
            p, q, by_p, by_q = held[:, : len(symbols)]
            for probabilities, chunk in zip((p, q), chunks, strict=True):
                scores = product(chunk, columns, room=probabilities)
                if bias is not None:
                    scores += bias
                logits = scores.gather(1, symbols).squeeze(1)
                torch.log_softmax(scores, dim=-1, out=probabilities)
                losses = -probabilities.gather(1, symbols).squeeze(1)
                nats += losses.sum() / 2
                even = losses + logits - chunk @ weight_mean - bias_mean
                objective += ((1 - smoothing) * losses + smoothing * even).sum() / 2
            apart = torch.sub(p, q, out=by_q)
            p.exp_()
            q.exp_()
            far_p = torch.linalg.vecdot(p, apart)[:, None]
            far_q = -torch.linalg.vecdot(q, apart)[:, None]
            objective += strength * (far_p + far_q).sum()
            torch.mul(apart, strength, out=by_p)
            _by_logits(by_p, far_p, own=p, other=q, strength=strength)
            _by_logits(by_q.mul_(-strength), far_q, own=q, other=p, strength=strength)
            for part, chunk, by in zip((by_p, by_q), chunks, by_passes, strict=True):
                part.scatter_add_(1, symbols, part.new_full(symbols.shape, (smoothing - 1) / 2))
                by[start : start + rows] = product(part, weight)
                add_product(by_columns, chunk.T, part)
                if by_bias is not None:
                    by_bias += part.sum(dim=0)
        if smoothing:
            for by in by_passes:
                by -= smoothing / 2 * weight_mean
            by_columns -= smoothing / 2 / vocab * (first + second).sum(dim=0)[:, None]
            if by_bias is not None:
                by_bias -= smoothing * len(first) / vocab
        ctx.save_for_backward(*by_passes, by_columns.T.contiguous(), by_bias)
        ctx.mark_non_differentiable(nats)
        return objective, nats

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if part is None else part * gradient for part in ctx.saved_tensors]
        return (*scaled, None, None, None, None)


def _by_logits(
    distances: Tensor, far: Tensor, *, own: Tensor, other: Tensor, strength: float
) -> None:
    """Turn a d into p / 2 + a (p (d + 1 - KL) - q), in place."""
    distances += 0.5 + strength * (1 - far)
    distances *= own
    distances.sub_(other, alpha=strength)
