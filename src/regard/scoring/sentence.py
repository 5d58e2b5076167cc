"""The score of one sentence, to rank sentences by; corpora are scored as a whole."""

from __future__ import annotations

from functools import cache

from sacrebleu.metrics.chrf import CHRF


def sentence_chrf(system: str, reference: str) -> float:
    """Return the chrF2 of one sentence (Popović 2015), from 0 to 100."""
    return float(_metric().sentence_score(system, [reference]).score)


@cache
def _metric() -> CHRF:
    return CHRF()
