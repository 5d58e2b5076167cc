"""A decoder whose every probability can be read off: a table from prefixes to distributions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard.base.results import Encoded, Step
from regard.base.special_tokens import BEGIN, END, PAD
from regard.decoding.search import LengthPenalty

VOCAB = 7  # four special tokens and three letters


@dataclass(frozen=True)
class Prefixes:
    """The state of the table: which sentence a row belongs to, and what it has read."""

    sentences: tuple[int, ...]
    read: tuple[tuple[int, ...], ...]


class TableDecoder:
    """Random but fixed probabilities for every sentence (its first token) and every prefix."""

    def __init__(self, seed: int, *, sharpness: float = 2.0):
        self.seed = seed
        self.sharpness = sharpness
        self.steps = 0
        self.known: dict[tuple[int, tuple[int, ...]], Tensor] = {}

    def logits(self, sentence: int, read: tuple[int, ...]) -> Tensor:
        if (sentence, read) not in self.known:
            number = hash((self.seed, sentence, read)) % 2**31
            generator = torch.Generator().manual_seed(number)
            logits = self.sharpness * torch.randn(VOCAB, generator=generator)
            self.known[sentence, read] = logits
        return self.known[sentence, read]

    def encode(self, source: Tensor, mask: Tensor) -> Encoded:
        return Encoded(memory=torch.zeros(*source.shape, 1), mask=mask, summary=source[:, 0])

    def start(self, encoded: Encoded) -> Prefixes:
        sentences = tuple(int(number) for number in encoded.summary)
        return Prefixes(sentences, ((),) * len(sentences))

    def step(
        self, tokens: Tensor, state: Prefixes, *, with_weights: bool = False
    ) -> Step[Prefixes]:
        self.steps += 1
        read = tuple((*old, int(new)) for old, new in zip(state.read, tokens, strict=True))
        rows = [self.logits(s, r) for s, r in zip(state.sentences, read, strict=True)]
        # The weights tell how much was read when they were made, so that their order shows.
        weights = torch.tensor([[float(len(r)), float(r[-1])] for r in read])
        logits = torch.stack(rows) if rows else torch.zeros(0, VOCAB)
        return Step(logits, Prefixes(state.sentences, read), weights if with_weights else None)

    def select(self, state: Prefixes, rows: Tensor) -> Prefixes:
        chosen = rows.tolist()
        return Prefixes(
            tuple(state.sentences[row] for row in chosen), tuple(state.read[row] for row in chosen)
        )

    def log_probability(self, sentence: int, tokens: tuple[int, ...]) -> float:
        """Return log p of these tokens and the end mark."""
        total, read = 0.0, (BEGIN,)
        for token in (*tokens, END):
            total += float(self.logits(sentence, read).log_softmax(dim=0)[token])
            read = (*read, token)
        return total

    def every_output(
        self, sentence: int, *, limit: int, penalty: LengthPenalty
    ) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Yield the score of every output of at most `limit` tokens, end mark included."""
        ordinary = [token for token in range(VOCAB) if token not in (PAD, BEGIN, END)]
        for length in range(limit):
            for tokens in itertools.product(ordinary, repeat=length):
                divisor = float(penalty.divisor(torch.tensor(length + 1)))
                score = self.log_probability(sentence, tokens) / divisor
                assert math.isfinite(score)
                yield score, tokens


@pytest.fixture(scope="session")
def table() -> type[TableDecoder]:
    return TableDecoder
