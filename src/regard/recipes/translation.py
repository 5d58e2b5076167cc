"""What a translator returns: a text with its score, its attention and its alternatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.base.errors import RegardError
from regard.recipes.attention_map import AttentionMap


@dataclass(frozen=True)
class Translation:
    """A translation with its evidence."""

    source: str
    text: str
    score: float
    log_probability: float
    attention: AttentionMap | None
    alternatives: tuple[Translation, ...] = ()

    def by_word(self) -> AttentionMap:
        """Return the attention between whole words, without the end marks."""
        if self.attention is None:
            raise RegardError("This translation was made without attention.")
        return self.attention.by_word(self.source, self.text)

    def _repr_html_(self) -> str:
        """Show itself in a notebook: both sentences, the alternatives, and what was attended to."""
        from regard.pictures.svg import notebook_lines

        others = [(f"{other.score:.3f}", other.text) for other in self.alternatives]
        lines = notebook_lines(("source", self.source), (f"{self.score:.3f}", self.text), *others)
        drawn = self.attention is not None and self.source.split() and self.text.split()
        return lines + (self.by_word()._repr_html_() if drawn else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": self.source,
            "text": self.text,
            "score": self.score,
            "log_probability": self.log_probability,
            **({"attention": self.attention.to_dict()} if self.attention else {}),
            **(
                {"alternatives": [other.to_dict() for other in self.alternatives]}
                if self.alternatives
                else {}
            ),
        }
