"""Sentence pairs out of documents that hold both languages: TMX, PO, XLIFF and JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from regard.base.errors import DataError
from regard.corpora.documents.document import Languages
from regard.corpora.documents.formats import decoded, format_of
from regard.corpora.documents.json_lines import read_object
from regard.corpora.documents.po import po_pairs
from regard.corpora.documents.tmx import tmx_pairs
from regard.corpora.documents.xliff import xliff_pairs
from regard.corpora.lines import open_text, read_lines, reading

FORMATS = ("tmx", "po", "xliff", "jsonl")
FIELDS = '{"source": "...", "target": "..."} or {"translation": {"en": "...", "de": "..."}}'


class PlacedPair(NamedTuple):
    """A pair and the line that it begins at."""

    line: int
    source: str
    target: str


def holds_pairs(path: Path) -> bool:
    """Return whether a file is a document with both languages, by its ending."""
    return format_of(Path(path.name.removesuffix(".gz"))) in FORMATS


def document_pairs(path: Path) -> list[PlacedPair]:
    """Return the pairs of a document; units without a translation are left out."""
    kind = format_of(Path(path.name.removesuffix(".gz")))
    if kind == "jsonl":
        found = [PlacedPair(*pair) for pair in _json_pairs(path)]
    else:
        with reading(path, expected="sentence pairs"), open_text(path) as file:
            content = decoded(file.read(), path=path)
        found = [PlacedPair(*pair) for pair in _pairs(kind, content, path)]
    if not found:
        raise DataError(
            "the file holds no translated sentence",
            path=path,
            remedy="Both languages are needed to learn from it.",
        )
    return found


def _pairs(kind: str, content: str, path: Path) -> Iterator[tuple[int, str, str]]:
    if kind == "tmx":
        return tmx_pairs(content, path=path, languages=Languages())
    return po_pairs(content, path=path) if kind == "po" else xliff_pairs(content, path=path)


def _json_pairs(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(read_lines(path, expected=f"a line as {FIELDS}"), 1):
        if not line.strip():
            continue
        record = read_object(line, path=path, line=number)
        sides = _sides(record)
        if not all(isinstance(side, str) and side.strip() for side in sides) or len(sides) != 2:
            raise DataError(
                "the line has no source and target",
                path=path,
                line=number,
                remedy=f"It should be as {FIELDS}.",
            )
        yield number, *(" ".join(side.split()) for side in sides)  # type: ignore[misc]


def _sides(record: dict[str, Any]) -> list[Any]:
    both = record.get("translation")
    if isinstance(both, dict):
        return list(both.values())
    return [record.get("source"), record.get("target")]
