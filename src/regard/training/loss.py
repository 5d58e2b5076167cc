"""The loss of predicted symbols, as a sum over the real target positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch.nn.functional as F

from regard.base.shapes import Bool, Float, Int, Tensor


class LossSum(NamedTuple):
    """What to minimise, and the plain negative log-likelihood in nats; both are sums."""

    objective: Float[Tensor, ""]
    nats: Float[Tensor, ""]


def token_loss(
    features: Float[Tensor, "batch target model_dim"],
    *,
    expected: Int[Tensor, "batch target"],
    mask: Bool[Tensor, "batch target"],
    project: Callable[[Tensor], Tensor],
    smoothing: float = 0.0,
) -> LossSum:
    """Return -sum_i log p(y_i), with label smoothing (Szegedy et al. 2016) in the objective.

    Only real positions are projected onto the vocabulary: padding costs nothing here.
    """
    logits = project(features[mask])  # [positions, vocab]
    wanted = expected[mask]
    nats = F.cross_entropy(logits, wanted, reduction="sum")
    if smoothing == 0.0:
        return LossSum(nats, nats.detach())
    smoothed = F.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing)
    return LossSum(smoothed, nats.detach())
