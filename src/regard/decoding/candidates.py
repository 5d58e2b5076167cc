"""The symbols that may come next, with their log-probabilities."""

from __future__ import annotations

import torch

from regard.base.shapes import Bool, Float, Tensor
from regard.base.special_tokens import BEGIN, END, PAD

IMPOSSIBLE = float("-inf")


def next_log_probabilities(
    logits: Float[Tensor, "rows vocab"], *, end_only: Bool[Tensor, "rows"]
) -> Float[Tensor, "rows vocab"]:
    """Return log p of every next symbol: never padding or begin, and at the limit only the end.

    The probability of the end mark stays what the model gives it, so that a forced end is not free.
    """
    log_probabilities = torch.log_softmax(logits.float(), dim=-1)
    log_probabilities[:, PAD] = IMPOSSIBLE
    log_probabilities[:, BEGIN] = IMPOSSIBLE
    if bool(end_only.any()):
        ends = log_probabilities[:, END].clone()
        log_probabilities[end_only] = IMPOSSIBLE
        log_probabilities[:, END] = ends
    return log_probabilities
