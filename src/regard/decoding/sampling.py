"""Sampling, and minimum Bayes risk over what was drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch

from regard.base.protocols import StepDecoder
from regard.base.results import Hypothesis
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.decoding.greedy import follow_paths
from regard.decoding.rules import Rules, keep_top_k, keep_top_p, with_temperature
from regard.decoding.search import LengthPenalty

State = TypeVar("State")


def sample(
    model: StepDecoder[State],
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    rules: Rules,
    seed: int,
    count: int = 1,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    penalty: LengthPenalty | None = None,
    with_weights: bool = False,
) -> list[list[Hypothesis]]:
    """Return `count` draws a sentence, the best scores first; two draws may be the same.

    A sentence's luck depends on the seed and its own symbols, so never on its neighbours.
    """
    sentences = [row[kept].tolist() for row, kept in zip(source, mask, strict=True)]
    luck = [
        _luck(seed, sentence, draw, length=int(limit))
        for sentence, limit in zip(sentences, rules.limits, strict=True)
        for draw in range(count)
    ]
    found = follow_paths(
        model,
        source,
        mask,
        rules=rules,
        pick=_picker(luck, temperature=temperature, top_k=top_k, top_p=top_p),
        paths=count,
        penalty=penalty or LengthPenalty(),
        with_weights=with_weights,
    )
    return [sorted(draws, key=lambda hypothesis: -hypothesis.score) for draws in found]


def _luck(
    seed: int, sentence: Sequence[int], draw: int, *, length: int
) -> Float[Tensor, "{length}"]:
    """Return one number between 0 and 1 for each symbol of an output."""
    generator = np.random.default_rng([seed, draw, *sentence])
    return torch.from_numpy(generator.random(length))


def _picker(
    luck: list[Tensor], *, temperature: float, top_k: int, top_p: float
) -> Callable[[Tensor, Tensor], Tensor]:
    numbers = torch.nn.utils.rnn.pad_sequence(luck, batch_first=True)
    steps = iter(numbers.unbind(1))

    def pick(values: Tensor, rows: Tensor) -> Tensor:
        values = with_temperature(values, temperature)
        values = keep_top_k(values, top_k) if top_k else values
        values = keep_top_p(values, top_p)
        return draw(torch.softmax(values.double(), dim=1), next(steps)[rows])

    return pick


def draw(
    probabilities: Float[Tensor, "rows vocab"], luck: Float[Tensor, "rows"]
) -> Int[Tensor, "rows"]:
    """Return the symbol at which the running sum of each row passes its number."""
    sums = probabilities.cumsum(dim=1)
    places = torch.searchsorted(sums, luck[:, None] * sums[:, -1:], right=True).squeeze(1)
    # Rounding may carry a number past the end; the last symbol that can come is meant.
    last = (sums < sums[:, -1:]).sum(dim=1)
    return torch.minimum(places, last)


Utility = Callable[[str, str], float]


def expected_utilities(draws: Sequence[str], utility: Utility) -> dict[str, float]:
    """Return the mean utility of each different draw against all draws, the best first.

    `utility(output, reference)` is computed once for each pair of different texts. Of equals, the
    one drawn first comes first.
    """
    counts = Counter(draws)
    expected = {
        output: sum(utility(output, other) * count for other, count in counts.items()) / len(draws)
        for output in counts
    }
    return dict(sorted(expected.items(), key=lambda item: -item[1]))
