"""Hugging Face's MarianMT and torch.nn.Transformer as contestants, in a plain bucketed loop.

python plain_loop.py FOLDER SIZE THREADS marian|torch
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from pieces import Pair, read_pairs
from protocol import BETAS, CLIP, LEARNING_RATE, SIDE_TOKENS, SIZES, VOCABULARY, serve
from torch import Tensor, nn

Sizes = dict[str, Any]
LONGEST = 512
PAD, BEGIN, END = 0, 2, 3


def marian(sizes: Sizes) -> tuple[nn.Module, Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]]:
    """Return MarianMT, and its own loss."""
    from transformers import MarianConfig, MarianMTModel

    sides = {
        f"{side}_{name}": sizes[value]
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", "layers"),
            ("attention_heads", "heads"),
            ("ffn_dim", "feed_forward"),
        )
    }
    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=sizes["model_dim"],
        dropout=sizes["dropout"],
        attention_dropout=sizes["dropout"],
        activation_dropout=sizes["dropout"],
        activation_function="relu",
        max_position_embeddings=LONGEST,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=BEGIN,
        use_cache=False,
        **sides,
    )

    def loss(model: nn.Module, source: Tensor, before: Tensor, wanted: Tensor) -> Tensor:
        found = model(
            input_ids=source,
            attention_mask=(source != PAD).long(),
            decoder_input_ids=before,
            labels=wanted.masked_fill(wanted == PAD, -100),
        )
        mean: Tensor = found.loss
        return mean

    return MarianMTModel(config), loss


class TorchTranslator(nn.Module):
    """torch.nn.Transformer between embeddings with sinusoids and a tied projection."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        width = sizes["model_dim"]
        self.embedding = nn.Embedding(VOCABULARY, width, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        angles = torch.arange(LONGEST)[:, None] * 1e4 ** -(torch.arange(0, width, 2) / width)
        places = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        self.places: Tensor
        self.register_buffer("places", places)
        self.dropout = nn.Dropout(sizes["dropout"])
        self.transformer = nn.Transformer(
            d_model=width,
            nhead=sizes["heads"],
            num_encoder_layers=sizes["layers"],
            num_decoder_layers=sizes["layers"],
            dim_feedforward=sizes["feed_forward"],
            dropout=sizes["dropout"],
            batch_first=True,
        )

    def forward(self, source: Tensor, before: Tensor) -> Tensor:
        """Return the logits of every target position."""
        length = before.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        features = self.transformer(
            self._embedded(source),
            self._embedded(before),
            tgt_mask=later,
            tgt_is_causal=True,
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return F.linear(features, self.embedding.weight)

    def _embedded(self, tokens: Tensor) -> Tensor:
        scaled = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        dropped: Tensor = self.dropout(scaled + self.places[: tokens.shape[1]])
        return dropped


def torch_transformer(
    sizes: Sizes,
) -> tuple[nn.Module, Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]]:
    """Return torch.nn.Transformer, and the usual loss."""

    def loss(model: nn.Module, source: Tensor, before: Tensor, wanted: Tensor) -> Tensor:
        logits = model(source, before)
        return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD)

    return TorchTranslator(sizes), loss


def bucketed(pairs: list[Pair]) -> Iterator[list[Pair]]:
    """Yield batches of like length without end, each within the limit of tokens a side."""
    shuffled = random.Random(1)
    while True:
        shuffled.shuffle(pairs)
        batches: list[list[Pair]] = [[]]
        longest = 0
        for pair in sorted(pairs, key=lambda pair: max(map(len, pair))):
            longest = max(longest, *(len(side) + 1 for side in pair))
            if batches[-1] and longest * (len(batches[-1]) + 1) > SIDE_TOKENS:
                batches.append([])
                longest = max(len(side) + 1 for side in pair)
            batches[-1].append(pair)
        shuffled.shuffle(batches)
        yield from batches


def padded(rows: list[list[int]]) -> list[list[int]]:
    """Return rows of ids, padded to one length."""
    longest = max(len(row) for row in rows)
    return [row + [PAD] * (longest - len(row)) for row in rows]


def tensors(batch: list[Pair]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the source, what the decoder reads and what it should say."""
    source = torch.tensor(padded([[*source, END] for source, _ in batch]))
    before = torch.tensor(padded([[BEGIN, *target] for _, target in batch]))
    wanted = torch.tensor(padded([[*target, END] for _, target in batch]))
    return source, before, wanted


def updates(work: Path, size: str, kind: str) -> Iterator[int]:
    """Train, one update at a time."""
    torch.manual_seed(1)
    model, loss = {"marian": marian, "torch": torch_transformer}[kind](SIZES[size])
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=BETAS, fused=True)
    for batch in bucketed(read_pairs(work)):
        source, before, wanted = tensors(batch)
        optimizer.zero_grad(set_to_none=True)
        loss(model, source, before, wanted).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        yield int((wanted != PAD).sum())


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[3]))
    serve(updates(Path(sys.argv[1]), sys.argv[2], sys.argv[4]))
