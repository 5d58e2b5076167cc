"""Minimum Bayes risk: of many draws, the one that is most like all of them.

An output is worth what it is expected to score if a draw of the model were the reference (Kumar &
Byrne 2004; Eikema & Aziz 2020, eq. 5). The draws stand for the model's probabilities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

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
