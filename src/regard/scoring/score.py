"""The result type of all measures: a number with its signature and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any


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
