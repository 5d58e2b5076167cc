"""R-Drop: two passes with other dropout should predict the same (Liang et al. 2021)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from regard.base.shapes import Bool, Float, Int, Tensor
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
    logits of a chunk are computed again for the gradient and never all held.
    """
    one, other, wanted = first[mask], second[mask], expected[mask]
    objective, nats = one.new_zeros(()), one.new_zeros(())
    for start in range(0, len(one), rows):
        part = slice(start, start + rows)
        losses = checkpoint(
            _chunk_loss,
            one[part],
            other[part],
            wanted[part],
            weight,
            bias,
            smoothing,
            strength,
            use_reentrant=False,
            preserve_rng_state=False,
        )
        objective, nats = objective + losses[0], nats + losses[1].detach()
    return LossSum(objective, nats)


def _chunk_loss(
    first: Tensor,
    second: Tensor,
    expected: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    smoothing: float,
    strength: float,
) -> tuple[Tensor, Tensor]:
    logs = [F.log_softmax(F.linear(f, weight, bias), dim=-1) for f in (first, second)]
    nats = torch.stack([F.nll_loss(log, expected, reduction="sum") for log in logs]).mean()
    uniform = torch.stack([-log.mean(dim=-1).sum() for log in logs]).mean()
    # KL(p || q) + KL(q || p) = sum (p - q) (log p - log q)
    apart = ((logs[0].exp() - logs[1].exp()) * (logs[0] - logs[1])).sum()
    return (1 - smoothing) * nats + smoothing * uniform + strength / 4 * apart, nats
