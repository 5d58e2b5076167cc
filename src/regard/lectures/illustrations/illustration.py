"""The form of an illustration: matrices with names, an equation, and the sentence they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regard.pictures.matrices import NamedMatrix, draw_matrices, matrices_svg
from regard.pictures.svg import notebook_picture


@dataclass(frozen=True)
class Illustration:
    """A calculation as matrices, with its equation and what it shows."""

    name: str
    title: str
    equation: str
    shows: str
    matrices: tuple[NamedMatrix, ...]
    figures: Mapping[str, float] = field(default_factory=dict)
    """Numbers that the sentence is about, as the largest difference of two results."""

    def save(self, path: Path) -> None:
        """Draw it (.png, .svg, .pdf), or write its numbers (.csv, .json)."""
        draw_matrices(self.matrices, path, title=self.title, note=self.note)

    def svg(self) -> str:
        """Return the picture as SVG text, for a page."""
        return matrices_svg(self.matrices, title=self.title, note=self.note)

    @property
    def note(self) -> str:
        """The equation and what is to be seen, for under the picture."""
        return f"{self.equation}\n{self.shows}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "equation": self.equation,
            "shows": self.shows,
            "figures": dict(self.figures),
            "matrices": {each.name: each.values.tolist() for each in self.matrices},
        }

    def _repr_html_(self) -> str:
        return notebook_picture(self.svg(), label=self.title)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of each row."""
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))
