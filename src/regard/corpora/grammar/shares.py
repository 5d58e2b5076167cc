"""Divides words among the parts of a sentence, so that its length comes out exactly."""

from __future__ import annotations

from collections.abc import Sequence

from regard.corpora.grammar.random_stream import RandomStream

Bounds = tuple[int, int]
"""Fewest and most words of a part."""


def possible(total: int, bounds: Sequence[Bounds]) -> bool:
    """Whether parts within these bounds can have so many words together."""
    return sum([low for low, _ in bounds]) <= total <= sum([high for _, high in bounds])


def share(stream: RandomStream, total: int, bounds: Sequence[Bounds]) -> list[int]:
    """Return random shares of a total, each within its bounds; `possible` must hold."""
    shares = [low for low, _ in bounds]
    extra = total - sum(shares)
    room = sum([high for _, high in bounds]) - sum(shares)
    # From a random part on, so that no part is always the long one.
    place = stream.below(len(bounds)) if extra else 0
    while extra:
        low, high = bounds[place]
        room -= high - low
        given = stream.between(max(0, extra - room), min(high - low, extra))
        shares[place] += given
        extra -= given
        place = (place + 1) % len(bounds)
    return shares
