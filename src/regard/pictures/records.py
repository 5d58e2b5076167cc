"""The numbers behind a picture, as a table that other programs read: CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from regard.pictures.written import unknown_suffix, write_bytes

Value: TypeAlias = str | int | float | None

DATA_SUFFIXES = (".csv", ".json")


@dataclass(frozen=True)
class Records:
    """Rows under named columns; each row has a value for each of them, or None."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Value]]

    def to_dicts(self) -> list[dict[str, Value]]:
        """Return each row with the names of its values."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def write_records(records: Records, path: Path) -> None:
    """Write a table as CSV, or as JSON with an object a row, by the suffix of the file's name."""
    suffix = path.suffix.lower()
    if suffix not in DATA_SUFFIXES:
        raise unknown_suffix(path, DATA_SUFFIXES)
    if suffix == ".csv":
        write_text(path, csv_text([records.columns, *records.rows]))
    else:
        write_text(path, json_text(records.to_dicts()))


def csv_text(rows: Sequence[Sequence[Value]]) -> str:
    """Return rows as CSV; None is an empty field."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def json_text(value: Any) -> str:
    """Return plain values as JSON that a person can read too."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8; a lone surrogate becomes a question mark rather than a crash."""
    write_bytes(path, text.encode("utf-8", errors="replace"))
