"""Sampling, and minimum Bayes risk over the samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """The distribution that tokens are drawn from, and the seed."""

    seed: int
    temperature: float = 1.0
    top_k: int = 0
    """Number of most probable tokens to draw from; 0 is all."""
    top_p: float = 1.0


def sample(
    model: StepDecoder[State],
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    rules: Rules,
    options: SamplingOptions,
    count: int = 1,
    penalty: LengthPenalty | None = None,
    with_weights: bool = False,
) -> list[list[Hypothesis]]:
    """Return `count` draws for each sentence, the best scores first; two may be the same.

    The random numbers of a sentence depend on the seed and its own tokens, never on its neighbours.
    """
    sentences = [row[kept].tolist() for row, kept in zip(source, mask, strict=True)]
    uniforms = [
        _uniforms(options.seed, sentence, draw, length=int(limit))
        for sentence, limit in zip(sentences, rules.limits, strict=True)
        for draw in range(count)
    ]
    found = follow_paths(
        model,
        source,
        mask,
        rules=rules,
        pick=_picker(uniforms, options),
        paths=count,
        penalty=penalty or LengthPenalty(),
        with_weights=with_weights,
    )
    return [sorted(draws, key=lambda hypothesis: -hypothesis.score) for draws in found]


def _uniforms(
    seed: int, sentence: Sequence[int], draw: int, *, length: int
) -> Float[Tensor, "{length}"]:
    """Return a uniform random number between 0 and 1 for each token of an output."""
    generator = np.random.default_rng([seed, draw, *sentence])
    return torch.from_numpy(generator.random(length))


def _picker(uniforms: list[Tensor], options: SamplingOptions) -> Callable[[Tensor, Tensor], Tensor]:
    numbers = torch.nn.utils.rnn.pad_sequence(uniforms, batch_first=True)
    steps = iter(numbers.unbind(1))

    def pick(values: Tensor, rows: Tensor) -> Tensor:
        values = with_temperature(values, options.temperature)
        values = keep_top_k(values, options.top_k) if options.top_k else values
        values = keep_top_p(values, options.top_p)
        return draw(torch.softmax(values.double(), dim=1), next(steps)[rows])

    return pick


def draw(
    probabilities: Float[Tensor, "rows vocab"], uniforms: Float[Tensor, "rows"]
) -> Int[Tensor, "rows"]:
    """Return the token at which the cumulative sum of each row exceeds its uniform number."""
    sums = probabilities.cumsum(dim=1)
    places = torch.searchsorted(sums, uniforms[:, None] * sums[:, -1:], right=True).squeeze(1)
    # Rounding may carry a number past the end; then it is the last possible token.
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
