"""A filter of sentence pairs by a translator: does the target follow from its own source?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import SettingsError
from regard.batching.batch import Example
from regard.corpora.filters import FEWEST_TO_ALIGN, WORST_PART, TextPair
from regard.tasks.translation.model import load
from regard.tasks.translation.results import forced_log_probabilities

LONGEST = 200  # tokens of a side that are scored
AT_ONCE = 200  # pairs


MeanLogs = Callable[[Sequence[str], Sequence[str]], NDArray[np.float64]]
"""The mean log-probability of the tokens of each target, given its source."""


class ModelAlignment:
    """Keeps pairs whose target the model expects of its source, and not of any other.

    The score of a pair is the mean of log p(y_i | y_<i, x) - log p(y_i | y_<i, x') over the tokens
    of the target, where x' is the source of another pair: without it, a fluent target would pass
    with any source. What 90 % of random pairs do not reach is kept.
    """

    def __init__(self, mean_logs: MeanLogs, sample: Sequence[TextPair]):
        if len(sample) < FEWEST_TO_ALIGN:
            raise SettingsError(
                f"A model needs {FEWEST_TO_ALIGN} pairs that other filters keep to learn what "
                f"random pairs score, but there are {len(sample)}: leave out --model."
            )
        self._mean_logs = mean_logs
        self._others = [pair.source for pair in sample]
        step = len(sample) // 2 + 1
        random = [
            TextPair(pair.source, sample[(place + step) % len(sample)].target)
            for place, pair in enumerate(sample)
        ]
        self._least = float(np.quantile(self.scores(random), WORST_PART))

    def scores(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        """Return the score of each pair."""
        targets = [pair.target for pair in pairs]
        others = [self._others[_number(target) % len(self._others)] for target in targets]
        own = self._mean_logs([pair.source for pair in pairs], targets)
        return own - self._mean_logs(others, targets)

    def __call__(self, pairs: Sequence[TextPair]) -> list[bool]:
        """Return which pairs are kept."""
        return [bool(score > self._least) for score in self.scores(pairs)]


def model_filter(run: Path) -> Callable[[Sequence[TextPair]], ModelAlignment]:
    """Return what makes a filter from a sample of a corpus and the model of a run."""
    translator = load(run)
    encode, encode_target = (
        translator.source_tokenizer.encode,
        translator.target_tokenizer.encode,
    )

    def mean_logs(sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float64]:
        found: list[float] = []
        for first in range(0, len(targets), AT_ONCE):
            rows = slice(first, first + AT_ONCE)
            examples = [
                Example(encode(source)[:LONGEST], encode_target(target)[:LONGEST])
                for source, target in zip(sources[rows], targets[rows], strict=True)
            ]
            logs = forced_log_probabilities(translator.model, examples)
            found += [float(values.mean()) for values in logs]
        return np.array(found)

    return lambda sample: ModelAlignment(mean_logs, sample)


def _number(target: str) -> int:
    """Return a number, always the same for the same target."""
    return int.from_bytes(blake2b(target.encode("utf-8", "surrogatepass"), digest_size=4).digest())
