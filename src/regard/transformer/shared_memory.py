"""Many prefixes of one source look at one memory, instead of a copy of it each.

In a search the rows of a sentence stand side by side. To attention they are what many queries of
one sentence are, so the memory need not be repeated for them, nor moved when they change places.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from regard.attention.multihead import KeysValues, MultiHeadAttention
from regard.base.results import Attended
from regard.base.shapes import Float, Int, Tensor


class Owners(NamedTuple):
    """Which sentences of the memory are still needed, and how many rows each of them has."""

    sentences: Int[Tensor, "kept"] | None
    """None if all are, in the same order."""
    width: int


def owners_of(rows: Int[Tensor, "chosen"], *, width: int, sentences: int) -> Owners:
    """Return whose rows these are, when each sentence had `width` of them.

    Where sentences would not have equally many, each row gets a memory of its own.
    """
    owner = torch.div(rows, width, rounding_mode="floor")
    kept, counts = torch.unique_consecutive(owner, return_counts=True)
    if not len(rows) or int(counts.min()) != int(counts.max()):
        return Owners(owner, 1)
    if len(kept) == sentences and torch.equal(kept, torch.arange(sentences, device=rows.device)):
        return Owners(None, int(counts[0]))
    return Owners(kept, int(counts[0]))


def look_across(
    attention: MultiHeadAttention,
    inputs: Float[Tensor, "rows target model_dim"],
    memory: KeysValues,
    penalties: Float[Tensor, "sentences 1 1 source"] | None,
    *,
    with_weights: bool = False,
) -> Attended:
    """Let rows look at the memory of their sentence."""
    rows, target, _ = inputs.shape
    sentences = memory.keys.shape[0]
    if rows == sentences:
        return attention.across(inputs, memory, penalties, with_weights=with_weights)
    together = inputs.reshape(sentences, rows // sentences * target, -1)
    context, weights = attention.across(together, memory, penalties, with_weights=with_weights)
    if weights is not None:
        heads, source = weights.shape[1], weights.shape[3]
        weights = weights.view(sentences, heads, -1, target, source).transpose(1, 2).flatten(0, 1)
    return Attended(context.reshape(inputs.shape), weights)
