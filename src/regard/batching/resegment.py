"""Subword regularisation: other subwords for the same sentence each time it is trained on."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from regard.batching.batch import Example
from regard.corpora.pair import SentencePair


@runtime_checkable
class SamplingEncoder(Protocol):
    """A tokenizer that can cut a text in many ways."""

    def sample(self, texts: Sequence[str], *, alpha: float, seed: int) -> list[list[int]]:
        """Return the ids of each text, cut at random."""
        ...


class Resegmenter:
    """Kudo 2018: ids drawn anew for each batch, as a function of seed, epoch and batch alone."""

    def __init__(
        self,
        pairs: Sequence[SentencePair],
        examples: Sequence[Example],
        *,
        source: SamplingEncoder,
        target: SamplingEncoder,
        alpha: float,
        seed: int,
        max_length: int,
    ):
        """Resegment these pairs, whose most likely ids are the examples in the same order."""
        self._pairs = pairs
        self._examples = examples
        self._source, self._target = source, target
        self._alpha = alpha
        self._seed = seed
        self._max_length = max_length

    def __call__(self, epoch: int, batch: int, rows: Sequence[int]) -> list[Example]:
        """Return the examples of a batch with other ids; one that grew too long stays as it was."""
        # SentencePiece takes 32 bits; NumPy mixes them the same way in all its versions.
        seed = int(np.random.SeedSequence([self._seed, epoch, batch]).generate_state(1)[0])
        sources = [self._pairs[row].source for row in rows]
        targets = [self._pairs[row].target for row in rows]
        sampled = [
            Example(array("i", source), array("i", target))
            for source, target in zip(
                self._source.sample(sources, alpha=self._alpha, seed=seed),
                self._target.sample(targets, alpha=self._alpha, seed=seed),
                strict=True,
            )
        ]
        return [
            example if max(example.lengths) <= self._max_length else self._examples[row]
            for row, example in zip(rows, sampled, strict=True)
        ]
