"""Draws of a translator in the order of their expected utility."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from regard.decoding.sampling import Utility, expected_utilities
from regard.recipes.translation import Translation
from regard.scoring.bleu import sentence_bleu, sentence_chrf

UTILITIES: dict[str, Utility] = {"chrf": sentence_chrf, "bleu": sentence_bleu}


def least_risk(draws: Sequence[Translation], utility: str) -> list[Translation]:
    """Return the different draws, the best first; their score is the utility they can expect."""
    by_text: dict[str, Translation] = {}
    for draw in draws:
        by_text.setdefault(draw.text, draw)
    expected = expected_utilities([draw.text for draw in draws], UTILITIES[utility])
    return [replace(by_text[text], score=value) for text, value in expected.items()]
