"""Confidence of BLEU: sacreBLEU's bootstrap over the test sentences, single and paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from regard.scoring.bleu import (
    SAMPLES,
    UNICODE_MARK,
    Band,
    Interval,
    bleu_interval,
    require_pairs,
    require_tokenizer,
)
from regard.settings.recipe import require_known
from regard.text.vocabulary import composed, uncomposed


@dataclass(frozen=True)
class BandWithInterval:
    """A band of sentence lengths with the interval of its BLEU, None if it is empty."""

    band: Band
    interval: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """Return the band as one row of plain values."""
        return {
            "low": self.band.low,
            "high": self.band.high,
            "sentences": self.band.sentences,
            "bleu": self.band.score.value if self.band.score else None,
            "bleu_low": self.interval.low if self.interval else None,
            "bleu_high": self.interval.high if self.interval else None,
        }


@dataclass(frozen=True)
class PairedResult:
    """A system compared with a baseline on the same sentences.

    `p_value` is the probability of a difference as large as this by chance alone; the baseline
    itself has none. `signature` names the number of samples and the seed.
    """

    bleu: float
    difference: float
    p_value: float | None
    interval: Interval
    signature: str

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return {
            "bleu": self.bleu,
            "difference": self.difference,
            "p_value": self.p_value,
            "low": self.interval.low,
            "high": self.interval.high,
            "signature": self.signature,
        }


def bands_with_intervals(
    bands: Sequence[Band],
    system: Sequence[str],
    reference: Sequence[str],
    source: Sequence[str],
    *,
    tokenize: str = "13a",
    samples: int = SAMPLES,
) -> list[BandWithInterval]:
    """Return the bands that `bleu_by_length` returned for these sentences with intervals."""
    lengths = [len(sentence.split()) for sentence in source]
    found = []
    for band in bands:
        rows = [row for row, length in enumerate(lengths) if band.low <= length <= band.high]
        interval = None
        if rows:
            interval = bleu_interval(
                [system[row] for row in rows],
                [reference[row] for row in rows],
                tokenize=tokenize,
                samples=samples,
            )
        found.append(BandWithInterval(band, interval))
    return found


@dataclass(frozen=True)
class BleuChange:
    """How much BLEU changes from one output of the same sentences to another, with an interval."""

    bleu: float
    baseline: float
    interval: Interval
    """Of the difference, over resampled sentences."""

    @property
    def difference(self) -> float:
        """The new BLEU minus the old."""
        return self.bleu - self.baseline


def bleu_change(
    system: Sequence[str],
    baseline: Sequence[str],
    reference: Sequence[str],
    *,
    tokenize: str = "13a",
    samples: int = SAMPLES,
    seed: int = 12_345,
) -> BleuChange:
    """Return the change of BLEU with the 95 % interval of paired resampling (Koehn 2004, 4).

    A single sentence that loops can move BLEU by a point; the interval shows that.
    """
    require_tokenizer(tokenize)
    metric = BLEU(tokenize=tokenize, effective_order=True, force=True)
    counts = []
    for outputs in (system, baseline):
        require_pairs(outputs, reference)
        counts.append(np.array(metric._extract_corpus_statistics(list(outputs), [list(reference)])))
    random = np.random.default_rng(seed)
    differences = []
    for _ in range(samples):
        rows = random.integers(0, len(reference), len(reference))
        new, old = (_bleu_of(metric, part[rows].sum(axis=0)) for part in counts)
        differences.append(new - old)
    low, high = np.percentile(differences, [2.5, 97.5])
    new, old = (_bleu_of(metric, part.sum(axis=0)) for part in counts)
    return BleuChange(new, old, Interval(float(low), float(high)))


def _bleu_of(metric: BLEU, counts: np.ndarray) -> float:
    return min(100.0, float(metric._compute_score_from_stats(counts.tolist()).score))


def paired_bootstrap(
    systems: Mapping[str, Sequence[str]],
    reference: Sequence[str],
    *,
    baseline: str,
    tokenize: str = "13a",
    samples: int = SAMPLES,
) -> dict[str, PairedResult]:
    """Compare each system with the baseline by paired resampling (Koehn 2004, section 4)."""
    require_known(baseline, systems, what="baseline")
    require_tokenizer(tokenize)
    for outputs in systems.values():
        require_pairs(outputs, reference)
    names = [baseline, *(name for name in systems if name != baseline)]
    test = PairedTest(
        [(name, [composed(one) for one in systems[name]]) for name in names],
        {"BLEU": BLEU(tokenize=tokenize, force=True)},
        [[composed(one) for one in reference]],
        test_type="bs",
        n_samples=samples,
    )
    signatures, found = test()
    changed = uncomposed(reference) or any(uncomposed(outputs) for outputs in systems.values())
    results: dict[str, Any] = dict(zip(names, found["BLEU"], strict=True))
    baseline_bleu = float(results[baseline].score)
    return {
        name: PairedResult(
            bleu=min(100.0, float(result.score)),
            difference=float(result.score) - baseline_bleu,
            p_value=None if name == baseline else float(result.p_value),
            interval=Interval.around(float(result.mean), float(result.ci)),
            signature=f"{signatures['BLEU']}{UNICODE_MARK if changed else ''}",
        )
        for name in systems
        for result in [results[name]]
    }
