"""Attention over finished outputs: one parallel pass of the model, no search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from regard.base.shapes import Float, Tensor
from regard.base.special_tokens import BEGIN, END
from regard.batching.batch import padded
from regard.batching.buckets import sorted_batches
from regard.models.translator import Translator

PASS_TOKENS = 4_096


@torch.inference_mode()
def attention_over(
    model: Translator[Any],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    head: tuple[int, int] | None = None,
) -> list[Float[Tensor, "target source"]]:
    """Return what each target looked at, as if the model had chosen it itself.

    Ids come without end marks; the maps have a last row and column for them. `head` is a layer and
    a head of the decoder, both counted from 0; without it the map is the one the model shows.
    """
    model.eval()
    maps: dict[int, Tensor] = {}
    lengths = [(len(s) + 1, len(t) + 1) for s, t in zip(sources, targets, strict=True)]
    for rows in sorted_batches(lengths, token_budget=PASS_TOKENS):
        source, mask = padded([sources[row] for row in rows], after=END)
        target, _ = padded([targets[row] for row in rows], before=BEGIN)
        if head is None:
            weights = model(source, mask, target, with_weights=True).attention
        else:
            layer, number = head
            weights = model.head_maps(source, mask, target).across[layer][:, number]
        for index, row in enumerate(rows):
            maps[row] = weights[index, : lengths[row][1], : lengths[row][0]].clone()
    return [maps[row] for row in range(len(sources))]
