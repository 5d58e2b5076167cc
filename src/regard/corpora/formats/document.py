"""Documents: fixed text and text to translate in file order; paragraphs and TSV columns."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.base.errors import DataError
from regard.corpora.formats.inline import Tag
from regard.settings.recipe import suggestion


@dataclass(frozen=True)
class Segment:
    """A text to translate, without markup and escapes.

    `write` escapes or quotes a translation for the file, and `arrange` lays out the result. `tags`
    are the tags inside the text, `protected` the placeholders in it, which must stay. With
    `hard_breaks`, line breaks are meaningful. `raw` is the text as the file has it, to be left
    alone where the translation is the same.
    """

    text: str
    write: Callable[[str], str] = str
    arrange: Callable[[str], str] = str
    tags: tuple[Tag, ...] = ()
    hard_breaks: bool = False
    line: int | None = None
    protected: tuple[tuple[int, int], ...] = ()
    raw: str | None = None


@dataclass(frozen=True)
class Document:
    """Fixed texts and segments in the order of the file."""

    parts: tuple[str | Segment, ...]

    @property
    def segments(self) -> list[Segment]:
        """The texts to translate."""
        return [part for part in self.parts if isinstance(part, Segment)]

    def filled(self, translations: Sequence[str]) -> str:
        """Return the document with these translations, already escaped for the format."""
        texts = iter(translations)
        written = [next(texts) if isinstance(part, Segment) else part for part in self.parts]
        return "".join(written)


@dataclass(frozen=True)
class Languages:
    """The codes of the two languages, such as "de"; empty if not given."""

    source: str = ""
    target: str = ""


BREAK = re.compile(r"((?:^|\n)(?:[^\S\n]*\n)+)")


def read_paragraphs(content: str, path: Path, languages: Languages) -> Document:
    """Return a text with its paragraphs as segments."""
    parts: list[str | Segment] = []
    line = 1
    for index, part in enumerate(BREAK.split(content)):
        if index % 2 or not part.strip():
            parts.append(part)
        else:
            parts.append(Segment(part, line=line))
        line += part.count("\n")
    return Document(tuple(parts))


class ColumnReader:
    """A reader of TSV lines; the column is a number from 1 or a name in the first line."""

    def __init__(self, column: str, *, path: Path):
        self._path = path
        self._name = None if column.isdigit() else column
        self._index = int(column) - 1 if column.isdigit() else -1

    def __call__(self, line: str, number: int) -> Document:
        """Return a line with its column as the segment."""
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
    """Return a text without tabs, which would shift the following columns."""
    return text.replace("\t", " ")
