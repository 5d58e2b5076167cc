"""Forced decoding: how probable a model finds translations that others have made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.base.shapes import Float, Tensor
from regard.batching.batch import Example, collate, sorted_batches
from regard.models.translator import Translator

PASS_TOKENS = 4_096


@dataclass(frozen=True)
class ScoredPair:
    """A given translation with its log-probability, as a whole and symbol by symbol."""

    source: str
    target: str
    score: float
    """The log-probability under the length penalty, comparable with a search's scores."""
    log_probability: float
    pieces: tuple[str, ...]
    """The symbols of the target and the end mark."""
    log_probabilities: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": self.source,
            "target": self.target,
            "score": self.score,
            "log_probability": self.log_probability,
            "pieces": list(self.pieces),
            "log_probabilities": list(self.log_probabilities),
        }


@torch.inference_mode()
def forced_log_probabilities(
    model: Translator[Any], examples: Sequence[Example]
) -> list[Float[Tensor, "target"]]:
    """Return log p of every symbol of each target, end mark included, in one parallel pass."""
    model.eval()
    found: dict[int, Tensor] = {}
    lengths = [example.lengths for example in examples]
    for rows in sorted_batches(lengths, token_budget=PASS_TOKENS):
        batch = collate([examples[row] for row in rows])
        features = model(batch.source, batch.source_mask, batch.target_input).features
        for index, row in enumerate(rows):  # one sentence's logits at a time: they are large
            length = lengths[row][1]
            logits = model.project(features[index, :length]).float()
            wanted = batch.target_output[index, :length, None]
            found[row] = logits.log_softmax(dim=-1).gather(1, wanted).squeeze(1)
    return [found[row] for row in range(len(examples))]
