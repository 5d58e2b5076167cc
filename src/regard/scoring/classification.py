"""Scores of a classifier: accuracy, macro-F1 and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int


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
