"""Confidence of BLEU: sacreBLEU's bootstrap over the test sentences, single and paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from regard.scoring.bleu import Band, require_pairs, require_tokenizer
from regard.settings.recipe import require_known

SAMPLES = 1_000


@dataclass(frozen=True)
class Interval:
    """The 95 % confidence interval of a score over resampled test sets."""

    low: float
    high: float

    @classmethod
    def around(cls, mean: float, half_width: float) -> Interval:
        """Return mean ± half width, clipped to percentages."""
        low, high = (min(100.0, max(0.0, end)) for end in (mean - half_width, mean + half_width))
        return cls(low, high)


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


def bleu_interval(
    system: Sequence[str],
    reference: Sequence[str],
    *,
    tokenize: str = "13a",
    samples: int = SAMPLES,
) -> Interval:
    """Return the interval of a corpus BLEU with effective order (Koehn 2004, section 3)."""
    require_pairs(system, reference)
    require_tokenizer(tokenize)
    metric = BLEU(tokenize=tokenize, effective_order=True, force=True)
    result = metric.corpus_score(list(system), [list(reference)], n_bootstrap=samples)
    return Interval.around(float(result._mean), float(result._ci))


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
        [(name, list(systems[name])) for name in names],
        {"BLEU": BLEU(tokenize=tokenize, force=True)},
        [list(reference)],
        test_type="bs",
        n_samples=samples,
    )
    signatures, found = test()
    results: dict[str, Any] = dict(zip(names, found["BLEU"], strict=True))
    baseline_bleu = float(results[baseline].score)
    return {
        name: PairedResult(
            bleu=min(100.0, float(result.score)),
            difference=float(result.score) - baseline_bleu,
            p_value=None if name == baseline else float(result.p_value),
            interval=Interval.around(float(result.mean), float(result.ci)),
            signature=str(signatures["BLEU"]),
        )
        for name in systems
        for result in [results[name]]
    }
