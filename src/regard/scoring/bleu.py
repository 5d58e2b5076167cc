"""BLEU and chrF, of corpora, of sentences and by length: sacreBLEU's numbers and signatures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.base.errors import RegardError, SettingsError
from regard.scoring.measures import Score
from regard.text.vocabulary import composed, uncomposed

# sacreBLEU has more, but they download a model or need a dictionary that is not installed.
TOKENIZERS = ("13a", "intl", "char", "zh", "none")


def corpus_bleu(
    system: Sequence[str],
    reference: Sequence[str],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    effective_order: bool = False,
) -> Score:
    """Return the BLEU of a corpus (Papineni et al. 2002; sacreBLEU: Post 2018).

    Texts that are not in Unicode's composed form are normalised, so that letters that look alike
    count as alike, and the signature says so. With `effective_order` a corpus too short to hold
    any 4-gram is scored by the n-grams it has instead of getting 0; wherever there is a 4-gram the
    value is the same.
    """
    require_pairs(system, reference)
    require_tokenizer(tokenize)
    metric = BLEU(
        tokenize=tokenize,
        lowercase=lowercase,
        effective_order=effective_order,
        force=True,  # or its hint about tokenised text would be printed at every validation
    )
    both = Composed.of(system, reference)
    result = metric.corpus_score(both.system, [both.reference])
    return Score(
        name="BLEU",
        value=min(100.0, float(result.score)),  # rounding can lift a perfect score just above 100
        signature=f"{metric.get_signature()}{both.mark}",
        detail={
            "precisions": [float(precision) for precision in result.precisions],
            "brevity_penalty": float(result.bp),
            "system_length": int(result.sys_len),
            "reference_length": int(result.ref_len),
            "matched_ngrams": [int(count) for count in result.counts],
            "system_ngrams": [int(count) for count in result.totals],
            "sentences": len(system),
        },
    )


def corpus_chrf(
    system: Sequence[str],
    reference: Sequence[str],
    *,
    word_order: int = 0,
    lowercase: bool = False,
) -> Score:
    """Return the chrF2 of a corpus (Popović 2015); `word_order=2` gives chrF2++ (Popović 2017)."""
    require_pairs(system, reference)
    if word_order < 0:
        raise SettingsError(f"word_order ({word_order}) must be 0 (chrF2) or more (2: chrF2++).")
    metric = CHRF(word_order=word_order, lowercase=lowercase)
    both = Composed.of(system, reference)
    result = metric.corpus_score(both.system, [both.reference])
    return Score(
        name=str(result.name),
        value=min(100.0, float(result.score)),
        signature=f"{metric.get_signature()}{both.mark}",
        detail={
            "character_order": int(result.char_order),
            "word_order": int(result.word_order),
            "beta": int(result.beta),
            "sentences": len(system),
        },
    )


UNICODE_MARK = "|unicode:nfc"


class Composed(NamedTuple):
    """Outputs and references in Unicode's composed form, and how many of each were not."""

    system: list[str]
    reference: list[str]
    changed: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, system: Sequence[str], reference: Sequence[str]) -> Composed:
        """Return both as they are if all are composed already, as nearly all texts are."""
        changed = uncomposed(system), uncomposed(reference)
        if not any(changed):
            return cls(list(system), list(reference))
        return cls(list(map(composed, system)), list(map(composed, reference)), changed)

    @property
    def mark(self) -> str:
        """What a signature adds to sacreBLEU's."""
        return UNICODE_MARK if any(self.changed) else ""


SAMPLES = 1_000  # resampled test sets


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
    both = Composed.of(system, reference)
    result = metric.corpus_score(both.system, [both.reference], n_bootstrap=samples)
    return Interval.around(float(result._mean), float(result._ci))


def chrf_interval(
    system: Sequence[str], reference: Sequence[str], *, samples: int = SAMPLES
) -> Interval:
    """Return the interval of a corpus chrF2 (Koehn 2004, section 3).

    sacreBLEU's own bootstrap fails where some of the resampled scores are zero.
    """
    require_pairs(system, reference)
    both = Composed.of(system, reference)
    metric = CHRF()
    counts = np.array(metric._extract_corpus_statistics(both.system, [both.reference]))
    rows = np.random.default_rng(12345).integers(len(counts), size=(samples, len(counts)))
    scores = [float(metric._compute_score_from_stats(counts[r].sum(axis=0)).score) for r in rows]
    low, high = np.percentile(scores, [2.5, 97.5])
    return Interval.around(float(np.mean(scores)), float(high - low) / 2)


def require_tokenizer(tokenize: str) -> None:
    """Refuse a BLEU tokenizer that is unknown or would have to be downloaded."""
    if tokenize not in TOKENIZERS:
        raise SettingsError(
            f"unknown BLEU tokenizer '{tokenize}'. Choose one of: {', '.join(TOKENIZERS)}."
        )


def require_pairs(system: Sequence[str], reference: Sequence[str]) -> None:
    """Refuse outputs and references that cannot be paired line by line."""
    if len(system) != len(reference):
        raise RegardError(
            f"{len(system)} system outputs cannot be scored against {len(reference)} references: "
            "both must have one line for each sentence."
        )
    if not system:
        raise RegardError("there is nothing to score: no system outputs and no references.")


def sentence_chrf(system: str, reference: str) -> float:
    """Return the chrF2 of one sentence (Popović 2015), from 0 to 100."""
    return float(_chrf().sentence_score(system, [reference]).score)


def sentence_bleu(system: str, reference: str) -> float:
    """Return the smoothed BLEU of one sentence with effective order, from 0 to 100."""
    return float(_bleu().sentence_score(system, [reference]).score)


@cache
def _chrf() -> CHRF:
    return CHRF()


@cache
def _bleu() -> BLEU:
    return BLEU(effective_order=True)


MOST_BANDS = 8
WIDTHS = (1, 2, 5, 10, 20, 50)
# A band with a smaller share of the corpus is merged with the next: its BLEU would be noise.
SMALLEST_SHARE = 0.01


@dataclass(frozen=True)
class Band:
    """The sentences whose source has `low` to `high` words (both included), and their BLEU."""

    low: int
    high: int
    sentences: int
    score: Score | None

    @property
    def label(self) -> str:
        """The band as text: `11–20`, or `7` if it has a single length."""
        return f"{self.low}" if self.low == self.high else f"{self.low}–{self.high}"

    def to_dict(self) -> dict[str, Any]:
        """Return the band as plain JSON values."""
        return {
            "low": self.low,
            "high": self.high,
            "sentences": self.sentences,
            "score": self.score.to_dict() if self.score is not None else None,
        }


def bleu_by_length(
    system: Sequence[str],
    reference: Sequence[str],
    source: Sequence[str],
    *,
    bands: Sequence[tuple[int, int]] | None = None,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> list[Band]:
    """Return the BLEU of each band of source lengths; a band without a sentence has no score.

    Words are counted by whitespace. Without `bands` they are chosen by `default_bands`. BLEU is
    taken with effective order, for the shortest band may hold no 4-gram at all.
    """
    require_pairs(system, reference)
    if len(source) != len(system):
        raise RegardError(
            f"{len(source)} source sentences do not match {len(system)} system outputs: "
            "both must have one line for each sentence."
        )
    lengths = [len(sentence.split()) for sentence in source]
    scored = []
    for low, high in default_bands(lengths) if bands is None else checked_bands(bands):
        rows = [row for row, length in enumerate(lengths) if low <= length <= high]
        score = None
        if rows:
            score = corpus_bleu(
                [system[row] for row in rows],
                [reference[row] for row in rows],
                tokenize=tokenize,
                lowercase=lowercase,
                effective_order=True,
            )
        scored.append(Band(low=low, high=high, sentences=len(rows), score=score))
    return scored


def default_bands(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return neighbouring bands of a round width that cover all lengths, none nearly empty."""
    longest = max(1, max(lengths))
    needed = -(-longest // MOST_BANDS)
    width = next((width for width in WIDTHS if width >= needed), -(-needed // 100) * 100)
    enough = max(1.0, SMALLEST_SHARE * len(lengths))

    edges = range(width, longest + width, width)
    low = min(1, min(lengths))  # 0 where a source line is empty
    bands: list[tuple[int, int]] = []
    for high in edges:
        if sum(low <= length <= high for length in lengths) >= enough:
            bands.append((low, high))
            low = high + 1
    if low <= edges[-1]:  # the few longest sentences join the last band
        bands[-1] = (bands[-1][0], edges[-1])
    return bands


def checked_bands(bands: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the bands, or refuse one that no sentence could ever be in."""
    for low, high in bands:
        if low > high:
            raise SettingsError(
                f"length band ({low}, {high}) is empty: its lower end must not pass its upper end."
            )
    return bands
