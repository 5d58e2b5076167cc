"""The result type of every measure, and the simple ones: error rates, classification, forecasts."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from regard.base.errors import RegardError


@dataclass(frozen=True)
class Score:
    """A measured number, the signature that says how it was measured, and the counts used.

    Values of BLEU, chrF and alignment error rate are percentages, from 0 to 100.
    """

    name: str
    value: float
    signature: str
    detail: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the score as plain JSON values."""
        return {
            "name": self.name,
            "value": self.value,
            "signature": self.signature,
            "detail": dict(self.detail),
        }

    def _repr_html_(self) -> str:
        """Return the number and, in small print, its signature, for a notebook."""
        name, signature = escape(self.name), escape(self.signature)
        return f"<b>{name} {self.value:.2f}</b><br><small><code>{signature}</code></small>"

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f} ({self.signature})"


Tokens = Sequence[Hashable]


def edit_distance(first: Tokens, second: Tokens) -> int:
    """Return the fewest insertions, deletions and substitutions that turn one into the other.

    Levenshtein 1966, by the recurrence of Wagner and Fischer 1974, one row at a time.
    """
    row = list(range(len(second) + 1))
    for i, token in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(second, start=1):
            substituted = diagonal + (token != other)
            diagonal = row[j]
            row[j] = min(substituted, row[j] + 1, row[j - 1] + 1)
    return row[-1]


def token_error_rate(
    hypotheses: Sequence[Tokens],
    references: Sequence[Sequence[Tokens]],
    *,
    name: str = "token error rate",
) -> Score:
    """Return the edits per reference token, in percent, each against the nearest reference.

    Among references that are equally near, the longest counts. Edits and lengths are summed over
    the corpus, so every token has the same weight. Many insertions can lead to more than 100.
    """
    _check(hypotheses, references)
    edits = tokens = 0
    for hypothesis, allowed in zip(hypotheses, references, strict=True):
        nearest = min((edit_distance(hypothesis, one), -len(one)) for one in allowed)
        edits += nearest[0]
        tokens -= nearest[1]
    return Score(
        name=name,
        value=100.0 * edits / tokens if tokens else 0.0,
        signature="edits:levenshtein|references:nearest|sum:corpus",
        detail={"edits": edits, "tokens": tokens, "sequences": len(hypotheses)},
    )


def sequence_error_rate(
    hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]], *, name: str = "WER"
) -> Score:
    """Return the share of sequences that equal none of their references, in percent."""
    _check(hypotheses, references)
    pairs = zip(hypotheses, references, strict=True)
    wrong = sum(
        all(list(one) != list(hypothesis) for one in allowed) for hypothesis, allowed in pairs
    )
    return Score(
        name=name,
        value=100.0 * wrong / len(hypotheses),
        signature="match:exact|references:any",
        detail={"wrong": wrong, "sequences": len(hypotheses)},
    )


def _check(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> None:
    if not hypotheses:
        raise RegardError("there is nothing to score: no hypotheses were given.")
    if len(hypotheses) != len(references):
        raise RegardError(
            f"{len(hypotheses)} hypotheses cannot be compared with {len(references)} references: "
            "each needs its own."
        )
    for number, allowed in enumerate(references, start=1):
        if not allowed:
            raise RegardError(f"hypothesis {number} has no reference to compare with.")


class LabelScore(NamedTuple):
    """Scores of one label, in percent; None where it never occurs or is never predicted."""

    label: str
    examples: int
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class ClassificationScore:
    """Counts of examples by true label (rows) and predicted label (columns)."""

    labels: tuple[str, ...]
    confusion: Int[np.ndarray, "labels labels"]

    @property
    def examples(self) -> int:
        """The number of examples."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """The share of examples with the correct label."""
        return float(np.trace(self.confusion) / max(1, self.examples))

    @property
    def macro_f1(self) -> float:
        """The mean F1 of all labels that occur or are predicted, each with the same weight."""
        right = np.diagonal(self.confusion)
        sums = self.confusion.sum(axis=0) + self.confusion.sum(axis=1)
        occurs = sums > 0
        return float(np.mean(2 * right[occurs] / sums[occurs])) if occurs.any() else 0.0

    def _repr_html_(self) -> str:
        """Return one line for a notebook."""
        return (
            f"<b>accuracy {self.accuracy:.1%}, macro-F1 {self.macro_f1:.3f}</b> "
            f"of {self.examples:,} examples with {len(self.labels)} labels"
        )

    def by_label(self) -> list[LabelScore]:
        """Return the score of each label."""
        found = []
        for place, label in enumerate(self.labels):
            right = int(self.confusion[place, place])
            true, given = int(self.confusion[place].sum()), int(self.confusion[:, place].sum())
            found.append(
                LabelScore(
                    label,
                    true,
                    precision=100 * right / given if given else None,
                    recall=100 * right / true if true else None,
                    f1=200 * right / (true + given) if true + given else None,
                )
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "examples": self.examples,
            "labels": list(self.labels),
            "confusion": self.confusion.tolist(),
        }


def score_labels(
    predicted: Sequence[int], expected: Sequence[int], *, labels: Sequence[str]
) -> ClassificationScore:
    """Compare predicted labels with the true ones, both as numbers."""
    confusion = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(confusion, (np.asarray(expected, dtype=int), np.asarray(predicted, dtype=int)), 1)
    return ClassificationScore(tuple(labels), confusion)


@dataclass(frozen=True)
class ForecastScore:
    """Mean squared errors of a model and of simple forecasts, in scaled units.

    The naive forecast repeats the last value, the seasonal one the values of the season before.
    `unit` is the length of the scaled interval [0, 1] in the units of the series.
    """

    mse: float
    naive_mse: float
    windows: int
    unit: float
    season: int | None = None
    seasonal_mse: float | None = None

    @property
    def seasonal_rmse(self) -> float | None:
        """The typical error of repeating the season before, in the units of the series."""
        if self.seasonal_mse is None:
            return None
        return float(np.sqrt(self.seasonal_mse)) * self.unit

    @property
    def rmse(self) -> float:
        """The typical error in the units of the series."""
        return float(np.sqrt(self.mse)) * self.unit

    @property
    def naive_rmse(self) -> float:
        """The typical error of the naive forecast in the units of the series."""
        return float(np.sqrt(self.naive_mse)) * self.unit

    def _repr_html_(self) -> str:
        """Return one line for a notebook."""
        return (
            f"<b>MSE {self.mse:.4g}</b>, of the naive forecast {self.naive_mse:.4g}; "
            f"{self.windows:,} windows"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; those of a season only if there is one."""
        errors = {"rmse": self.rmse, "naive_rmse": self.naive_rmse}
        found = {**asdict(self), **errors, "seasonal_rmse": self.seasonal_rmse}
        return {name: value for name, value in found.items() if value is not None}


def score_forecast(
    forecast: Float[np.ndarray, "windows horizon"],
    expected: Float[np.ndarray, "windows horizon"],
    *,
    last: Float[np.ndarray, "windows"],
    unit: float,
    season: int | None = None,
    seasonal: Float[np.ndarray, "windows horizon"] | None = None,
) -> ForecastScore:
    """Score a forecast, the naive one and, where there is a season, the seasonal one."""
    return ForecastScore(
        mse=float(np.mean((forecast - expected) ** 2)),
        naive_mse=float(np.mean((last[:, None] - expected) ** 2)),
        windows=len(expected),
        unit=unit,
        season=season if seasonal is not None else None,
        seasonal_mse=None if seasonal is None else float(np.mean((seasonal - expected) ** 2)),
    )
