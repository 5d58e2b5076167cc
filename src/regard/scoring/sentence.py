"""The score of one sentence, to rank sentences by; corpora are scored as a whole."""

from __future__ import annotations

from functools import cache

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF


def sentence_chrf(system: str, reference: str) -> float:
    """Return the chrF2 of one sentence (Popović 2015), from 0 to 100."""
    return float(_chrf().sentence_score(system, [reference]).score)


def sentence_bleu(system: str, reference: str) -> float:
    """Return the BLEU of one sentence, by the n-grams it has, smoothed; from 0 to 100."""
    return float(_bleu().sentence_score(system, [reference]).score)


@cache
def _chrf() -> CHRF:
    return CHRF()


@cache
def _bleu() -> BLEU:
    return BLEU(effective_order=True)
