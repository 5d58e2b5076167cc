"""Augmentation: other subwords for a sentence (Kudo 2018), and word dropout."""

from array import array
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from regard.base.shapes import Int, Tensor
from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.batching.batch import Batch, Example, by_length
from regard.corpora.parallel import SentencePair


@runtime_checkable
class SamplingEncoder(Protocol):
    """A tokenizer that can cut a text in many ways."""

    def sample(self, texts: Sequence[str], *, alpha: float, seed: int) -> list[list[int]]:
        """Return the ids of each text, cut at random."""
        ...


class Resegmenter:
    """Kudo 2018: ids drawn anew in each epoch, as a function of seed, epoch and batch alone."""

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

    def __call__(
        self, epoch: int, first: int, batches: Sequence[Sequence[int]]
    ) -> list[list[Example]]:
        """Return the examples of successive batches with other ids; `first` numbers the first.

        One that would grow too long stays as it was. Sentences of one length no longer are when
        they are cut anew, so those of all these batches are dealt out again by length: every batch
        keeps its number of rows and its rank among them, and pads as little as before.
        """
        rows = [row for batch in batches for row in batch]
        drawn = self._draw(rows, seeds=[self._seed, epoch, first])
        from_short = iter(by_length(np.array([example.lengths for example in drawn])).tolist())
        longest = [max(max(self._examples[row].lengths) for row in batch) for batch in batches]
        dealt: list[list[Example]] = [[] for _ in batches]
        for number in np.argsort(longest, kind="stable").tolist():
            dealt[number] = [drawn[place] for place in islice(from_short, len(batches[number]))]
        return dealt

    def _draw(self, rows: Sequence[int], *, seeds: Sequence[int]) -> list[Example]:
        """Return other ids for these rows."""
        # NumPy mixes seeds the same way in all its versions.
        seed = int(np.random.SeedSequence(seeds).generate_state(1)[0])
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


def _dropped(tokens: Int[Tensor, "batch time"], share: float) -> Int[Tensor, "batch time"]:
    chosen = (torch.rand(tokens.shape) < share).to(tokens.device) & (tokens >= len(SPECIALS))
    return tokens.masked_fill(chosen, UNKNOWN)
