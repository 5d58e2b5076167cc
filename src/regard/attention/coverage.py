"""Coverage: a penalty on looking again at what was looked at before."""

from __future__ import annotations

from regard.base.shapes import Bool, Float, Tensor


def coverage_penalty(
    weights: Float[Tensor, "batch target source"], mask: Bool[Tensor, "batch target"]
) -> Float[Tensor, ""]:
    """Return sum_ij min(alpha_ij, sum_{k<i} alpha_kj) over real targets (See et al. 2017, eq. 12).

    It is zero if no two target positions look at the same source position.
    """
    before = weights.cumsum(dim=1) - weights  # sum_{k<i} alpha_kj
    overlap = weights.minimum(before).sum(dim=2)  # [batch, target]
    return (overlap * mask).sum()
