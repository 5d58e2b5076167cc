"""The result type of every measure: a number that carries its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any


@dataclass(frozen=True)
class Score:
    """A measured number, the signature that says how it was measured, and the counts behind it.

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
        """Show itself in a notebook: the number, and small below it how it was measured."""
        name, signature = escape(self.name), escape(self.signature)
        return f"<b>{name} {self.value:.2f}</b><br><small><code>{signature}</code></small>"

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f} ({self.signature})"
