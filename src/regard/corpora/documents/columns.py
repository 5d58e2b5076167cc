"""One column of a file whose columns are separated by tabs."""

from __future__ import annotations

from pathlib import Path

from regard.base.errors import DataError
from regard.corpora.documents.document import Document, Segment
from regard.settings.suggest import suggestion


class ColumnReader:
    """Reads the lines of a TSV file; the column is a number from 1, or a name in the first line."""

    def __init__(self, column: str, *, path: Path):
        self._path = path
        self._name = None if column.isdigit() else column
        self._index = int(column) - 1 if column.isdigit() else -1

    def __call__(self, line: str, number: int) -> Document:
        """Return a line with its column as the text to translate."""
        cells = line.split("\t")
        if self._name is not None and number == 1:
            self._find(self._name, cells)
            return Document((line,))
        if not line:
            return Document(("",))
        if not 0 <= self._index < len(cells):
            raise DataError(
                f"{len(cells)} column{'s' * (len(cells) != 1)}, but column {self._index + 1} "
                "is to be translated",
                path=self._path,
                line=number,
                remedy="Columns are separated by tabs and counted from 1.",
            )
        before, after = cells[: self._index], cells[self._index + 1 :]
        return Document(
            (
                "".join(f"{cell}\t" for cell in before),
                Segment(cells[self._index], write=_one_cell, line=number),
                "".join(f"\t{cell}" for cell in after),
            )
        )

    def _find(self, name: str, cells: list[str]) -> None:
        if name not in cells:
            raise DataError(
                f"there is no column {name!r}",
                path=self._path,
                line=1,
                remedy=suggestion(name, cells),
            )
        self._index = cells.index(name)


def _one_cell(text: str) -> str:
    """A tab inside a cell would shift the columns behind it."""
    return text.replace("\t", " ")
