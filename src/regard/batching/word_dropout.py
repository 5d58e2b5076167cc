"""Word dropout: symbols that a model must do without in training."""

from __future__ import annotations

from dataclasses import replace

import torch

from regard.base.shapes import Int, Tensor
from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.batching.batch import Batch


def drop_words(batch: Batch, share: float) -> Batch:
    """Return the batch with a share of what is read unknown; what should be said stays.

    Gal & Ghahramani 2016. Begin, end and padding are never dropped. The random numbers are
    torch's, so a resumed training draws the same.
    """
    return replace(
        batch,
        source=_dropped(batch.source, share),
        target_input=_dropped(batch.target_input, share),
    )


def _dropped(symbols: Int[Tensor, "batch time"], share: float) -> Int[Tensor, "batch time"]:
    chosen = (torch.rand(symbols.shape) < share).to(symbols.device) & (symbols >= len(SPECIALS))
    return symbols.masked_fill(chosen, UNKNOWN)
