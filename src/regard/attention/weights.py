"""From scores to weights to context: the two steps that every kind of attention shares."""

from __future__ import annotations

import torch

from regard.attention.repeated import mixture
from regard.base.results import Attended
from regard.base.shapes import Bool, Float, Tensor


def masked_softmax(
    scores: Float[Tensor, "*batch source"], mask: Bool[Tensor, "*mask_batch source"]
) -> Float[Tensor, "*batch source"]:
    """Return weights that sum to one over the positions that may be attended to.

    A row in which nothing may be attended to has weights of zero, never NaN.
    """
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
    return weights.masked_fill(~mask, 0.0)


def attend(
    scores: Float[Tensor, "batch *heads target source"],
    *,
    values: Float[Tensor, "batch source value_dim"],
    mask: Bool[Tensor, "batch source"],
    with_weights: bool = False,
) -> Attended:
    """Return c_i = sum_j alpha_ij h_j with alpha = softmax(e) (Bahdanau et al. 2015, eq. 5-6).

    Several heads share the width of the values among them; the weights returned are their mean.
    """
    if scores.dim() == 3:
        weights = masked_softmax(scores, mask[:, None, :])
        return Attended(mixture(weights, values), weights if with_weights else None)
    weights = masked_softmax(scores, mask[:, None, None, :])
    batch, source, _ = values.shape
    split = values.view(batch, source, scores.shape[1], -1).transpose(1, 2)
    context = (weights @ split).transpose(1, 2).flatten(2)  # [batch, target, value_dim]
    return Attended(context, weights.mean(dim=1) if with_weights else None)
