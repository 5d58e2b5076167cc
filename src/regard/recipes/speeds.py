"""How fast translators are beside each other: measured in turn, so that all meet the same moods."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median

from regard.recipes.loaded import LoadedTranslator

WARM_UP = 4


def speeds_in_turn(
    models: Mapping[str, LoadedTranslator], sources: Sequence[str], *, rounds: int
) -> dict[str, list[float]]:
    """Return the sentences a second of each model in every round, after a short warming up."""
    for model in models.values():
        model.translate(sources[:WARM_UP], attention=False)
    speeds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(rounds):
        for name, model in models.items():
            began = time.perf_counter()
            model.translate(sources, attention=False, scores=False)
            speeds[name].append(len(sources) / (time.perf_counter() - began))
    return speeds


def speed_ratio(speeds: Sequence[float], baseline: Sequence[float]) -> float:
    """Return how many times as fast as the baseline: the ratio of the medians over the rounds.

    So it agrees with the medians where both are shown.
    """
    return median(speeds) / median(baseline)


def spread_sample(sources: Sequence[str], count: int) -> list[str]:
    """Return so many sentences of all lengths, from short to long."""
    ordered = sorted(sources, key=lambda source: len(source.split()))
    if len(ordered) <= count:
        return ordered
    return [ordered[place * len(ordered) // count] for place in range(count)]
