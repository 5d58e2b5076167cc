"""Augmentation: changed texts, other subwords for a sentence (Kudo 2018), and word dropout."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from regard.base.protocols import Tokenizer
from regard.base.shapes import Int, Tensor
from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.batching.batch import Batch, Example, by_length, taken
from regard.corpora.parallel import SentencePair
from regard.text.perturbation import BothSides, perturbed


@runtime_checkable
class SamplingEncoder(Protocol):
    """A tokenizer that can cut a text in many ways."""

    def sample(self, texts: Sequence[str], *, alpha: float, seed: int) -> list[list[int]]:
        """Return the ids of each text, cut at random."""
        ...


class Perturber:
    """Pairs whose texts are changed at random, as a function of seed, epoch and row alone."""

    def __init__(self, pairs: Sequence[SentencePair], shares: Mapping[str, float], *, seed: int):
        """Change these shares of the pairs, by the names of `text.perturbation.KINDS`."""
        self._pairs = pairs
        self._shares = shares
        self._seed = seed

    def __call__(self, epoch: int, row: int) -> SentencePair:
        """Return a pair as it is read in an epoch."""
        # NumPy mixes seeds the same way in all its versions.
        state = np.random.SeedSequence([self._seed, epoch, row]).generate_state(2, np.uint64)
        draw = Random(int(state[0]))

        def other() -> BothSides:
            pair = self._pairs[int(state[1]) % len(self._pairs)]
            return pair.source, pair.target

        pair = self._pairs[row]
        texts = perturbed((pair.source, pair.target), self._shares, draw, other=other)
        return pair if texts == (pair.source, pair.target) else SentencePair(*texts)


class Resegmenter:
    """Kudo 2018: ids drawn anew in each epoch, as a function of seed, epoch and batch alone.

    With a `perturb`, the texts are changed before; with `alpha` 0 they are cut as always.
    """

    def __init__(
        self,
        pairs: Sequence[SentencePair],
        examples: Sequence[Example],
        *,
        source: SamplingEncoder | Tokenizer,
        target: SamplingEncoder | Tokenizer,
        alpha: float,
        seed: int,
        max_length: int,
        perturb: Perturber | None = None,
        align: Callable[[SentencePair, Example], Example] | None = None,
    ):
        """Resegment these pairs, whose most likely ids are the examples in the same order."""
        self._pairs = pairs
        self._examples = examples
        self._source, self._target = source, target
        self._alpha = alpha
        self._seed = seed
        self._max_length = max_length
        self._perturb = perturb
        self._align = align

    def __call__(
        self, epoch: int, first: int, batches: Sequence[Sequence[int]]
    ) -> list[list[Example]]:
        """Return the examples of successive batches with other ids; `first` numbers the first.

        One that would grow too long stays as it was. Sentences of one length no longer are when
        they are cut anew, so those of all these batches are dealt out again by length: every batch
        keeps its number of rows and its rank among them, and pads as little as before.
        """
        rows = [row for batch in batches for row in batch]
        drawn = self._within(batches, self._draw(rows, epoch, first))
        from_short = iter(by_length(np.array([example.lengths for example in drawn])).tolist())
        longest = self._longest(batches)
        dealt: list[list[Example]] = [[] for _ in batches]
        for number in np.argsort(longest, kind="stable").tolist():
            dealt[number] = [drawn[place] for place in islice(from_short, len(batches[number]))]
        return dealt

    def _draw(self, rows: Sequence[int], epoch: int, first: int) -> list[Example]:
        """Return other ids for these rows."""
        seed = int(np.random.SeedSequence([self._seed, epoch, first]).generate_state(1)[0])
        pairs = (
            [self._perturb(epoch, row) for row in rows]
            if self._perturb
            else taken(self._pairs, rows)
        )
        sampled = [
            Example(array("i", source), array("i", target))
            for source, target in zip(
                self._cut(self._source, [pair.source for pair in pairs], seed),
                self._cut(self._target, [pair.target for pair in pairs], seed),
                strict=True,
            )
        ]
        if self._align is not None:
            sampled = [self._align(*both) for both in zip(pairs, sampled, strict=True)]
        before = taken(self._examples, rows)
        return [
            example if max(example.lengths) <= self._max_length else old
            for old, example in zip(before, sampled, strict=True)
        ]

    def _cut(
        self, tokenizer: SamplingEncoder | Tokenizer, texts: Sequence[str], seed: int
    ) -> list[list[int]]:
        if self._alpha and isinstance(tokenizer, SamplingEncoder):
            return tokenizer.sample(texts, alpha=self._alpha, seed=seed)
        return [tokenizer.encode(text) for text in texts]  # type: ignore[union-attr]

    def _within(
        self, batches: Sequence[Sequence[int]], drawn: Sequence[Example]
    ) -> Sequence[Example]:
        """Return the examples without those that would make a batch far larger than any was.

        Joined lines are long. Dealt out by length, the longest come to the batches of few rows; if
        there are more of them, they stay as they were.
        """
        if self._perturb is None:
            return drawn
        before = taken(self._examples, [row for batch in batches for row in batch])
        longest = self._longest(batches)
        ranked = np.argsort(longest, kind="stable").tolist()  # as they will be dealt out
        counts = [len(batches[number]) for number in ranked]
        largest = max(len(batch) * most for batch, most in zip(batches, longest, strict=True))
        limits = np.repeat([SLACK * largest / count for count in counts], counts)
        lengths = np.array([max(example.lengths) for example in drawn])
        order = np.argsort(lengths, kind="stable")
        kept = list(drawn)
        for place in order[lengths[order] > limits].tolist():
            kept[place] = before[place]
        return kept

    def _longest(self, batches: Sequence[Sequence[int]]) -> list[int]:
        """Return the length of the longest side in each batch."""
        return [max(max(e.lengths) for e in taken(self._examples, batch)) for batch in batches]


SLACK = 1.25  # how much larger a batch may become


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
