"""What is asked of all translations: a beginning, words that must or must not appear, and terms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from regard.base.errors import DataError
from regard.corpora.lines import read_lines
from regard.recipes.text_constraints import TextConstraints

TERMS = "a source term, a tab and its translation a line"


class Wishes:
    """Turns what is asked of all translations into what is asked of the one of a sentence.

    `terms` are source terms and their translations: where the one stands in a sentence, the other
    must stand in its translation.
    """

    def __init__(
        self,
        *,
        prefix: str = "",
        required: tuple[str, ...] = (),
        forbidden: tuple[str, ...] = (),
        terms: Mapping[str, str] | None = None,
    ):
        self._always = TextConstraints(prefix, required, forbidden)
        self._terms = {source.lower(): target for source, target in (terms or {}).items()}

    def __bool__(self) -> bool:
        return bool(self._always or self._terms)

    def of(self, text: str) -> TextConstraints:
        """Return what is asked of the translation of this sentence."""
        if not self._terms:
            return self._always
        found = dict.fromkeys(self._terms[m[0].lower()] for m in self._pattern.finditer(text))
        required = dict.fromkeys((*self._always.required, *found))
        return TextConstraints(self._always.prefix, tuple(required), self._always.forbidden)

    def to_dict(self) -> dict[str, object]:
        """Return plain values that tell these wishes from others."""
        always = self._always
        return {
            "prefix": always.prefix,
            "required": list(always.required),
            "forbidden": list(always.forbidden),
            "terms": self._terms,
        }

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Whole words; of terms that begin alike the longest is found."""
        longest_first = sorted(self._terms, key=len, reverse=True)
        return re.compile(
            rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE
        )


def read_terms(path: Path) -> dict[str, str]:
    """Read a list of terms: source term, tab, translation."""
    terms = {}
    for number, line in enumerate(read_lines(path, expected=TERMS), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < 2 or not cells[0] or not cells[1]:
            raise DataError(
                "a term without a translation",
                path=path,
                line=number,
                remedy=f"The file should hold {TERMS}.",
            )
        terms[cells[0]] = cells[1]
    return terms
