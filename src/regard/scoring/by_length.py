"""BLEU by sentence length: the corpus cut into bands by the number of source words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.base.errors import RegardError, SettingsError
from regard.scoring.bleu import corpus_bleu, require_pairs
from regard.scoring.score import Score

MOST_BANDS = 8
WIDTHS = (1, 2, 5, 10, 20, 50)
# A band below this share of the corpus joins its neighbour: its BLEU would be mostly chance.
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
        """The band as a person writes it: `11–20`, or `7` if it holds one length."""
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
