"""Attention over given pairs: one parallel pass over the finished target, no search."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.base.errors import RegardError
from regard.batching.batch import collate, encode_pairs
from regard.batching.buckets import sorted_batches
from regard.corpora.pair import SentencePair
from regard.recipes.attention_map import AttentionMap
from regard.recipes.loaded import LoadedTranslator

ALIGN_TOKENS = 4_096


@torch.inference_mode()
def align(model: LoadedTranslator, pairs: Sequence[SentencePair]) -> list[AttentionMap]:
    """Return the attention behind each given target, as if the model had chosen it itself."""
    if not model.attends:
        raise RegardError("This model has no attention to align by.")
    examples = encode_pairs(
        pairs,
        source_tokenizer=model.source_tokenizer,
        target_tokenizer=model.target_tokenizer,
        max_length=None,
    )
    maps: dict[int, AttentionMap] = {}
    lengths = [example.lengths for example in examples]
    for rows in sorted_batches(lengths, token_budget=ALIGN_TOKENS):
        batch = collate([examples[row] for row in rows])
        output = model.model(batch.source, batch.source_mask, batch.target_input, with_weights=True)
        for index, row in enumerate(rows):
            source, target = examples[row].source, examples[row].target
            weights = output.attention[index, : len(target) + 1, : len(source) + 1]
            maps[row] = model.attention_map(source, target, weights)
    return [maps[row] for row in range(len(pairs))]
