"""An attention map with its labels: what each target symbol looked at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from regard.base.special_tokens import SPECIALS
from regard.scoring.alignment import Link, best_links, merge_to_words

END_MARK = SPECIALS[3]


@dataclass(frozen=True)
class AttentionMap:
    """Weights between target and source pieces; the last row and column are the end marks.

    `source_words` and `target_words` give each piece the index of its word, -1 for the end mark.
    """

    weights: Float[np.ndarray, "target source"]
    source: tuple[str, ...]
    target: tuple[str, ...]
    source_words: tuple[int, ...]
    target_words: tuple[int, ...]

    def by_word(self, source_text: str, target_text: str) -> AttentionMap:
        """Return the map between whitespace-separated words, without the end marks."""
        source, target = tuple(source_text.split()), tuple(target_text.split())
        merged = merge_to_words(
            self.weights, source_words=self.source_words, target_words=self.target_words
        )
        weights = np.zeros((len(target), len(source)), dtype=self.weights.dtype)
        rows, columns = merged.shape
        weights[:rows, :columns] = merged[: len(target), : len(source)]
        return AttentionMap(
            weights, source, target, tuple(range(len(source))), tuple(range(len(target)))
        )

    def links(self) -> frozenset[Link]:
        """Return a (source, target) link to the most attended source word of each target word."""
        merged = merge_to_words(
            self.weights, source_words=self.source_words, target_words=self.target_words
        )
        return best_links(merged)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": list(self.source),
            "target": list(self.target),
            "weights": [[round(float(w), 6) for w in row] for row in self.weights],
        }

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the heat map."""
        from regard.pictures.heat_map import heat_map_svg
        from regard.pictures.svg import notebook_picture

        drawn = heat_map_svg(self.weights, source=self.source, target=self.target)
        return notebook_picture(drawn, label="attention heat map")

    def plot(self, path: str | Path | None = None, *, title: str | None = None) -> Any:
        """Draw the heat map to a file (PNG, SVG, PDF), or return a figure for a notebook.

        A file that ends in .csv or .json gets the weights.
        """
        from regard.pictures.heat_map import heat_map_figure, write_map

        if path is None:
            return heat_map_figure(
                self.weights, source=self.source, target=self.target, title=title
            )
        write_map(
            self.weights, source=self.source, target=self.target, path=Path(path), title=title
        )
        return Path(path)
