"""The registry of document formats by name and file ending, and the sentence pairs in them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from regard.base.errors import DataError
from regard.corpora.formats.document import Document, Languages, read_paragraphs
from regard.corpora.formats.html import read_html
from regard.corpora.formats.json_lines import read_object
from regard.corpora.formats.po import po_pairs, read_po
from regard.corpora.formats.srt import read_srt
from regard.corpora.formats.tmx import read_tmx, tmx_pairs
from regard.corpora.formats.xliff import read_xliff, xliff_pairs
from regard.corpora.lines import open_text, read_lines, reading
from regard.settings.recipe import require_known

# Read line by line at any size; all other formats are read as a whole.
LINE_FORMATS = ("lines", "tsv", "jsonl")
ENDINGS = {
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".tmx": "tmx",
    ".po": "po",
    ".pot": "po",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".srt": "srt",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
}

Reader: TypeAlias = Callable[[str, Path, Languages], Document]

# Formats that are read as a whole.
READERS: dict[str, Reader] = {
    "text": read_paragraphs,
    "tmx": read_tmx,
    "po": read_po,
    "xliff": read_xliff,
    "srt": read_srt,
    "html": read_html,
}
FORMATS = (*LINE_FORMATS, *READERS)


def format_of(path: Path | None, *, named: str | None = None) -> str:
    """Return the named format, or the format of the file ending, or "lines"."""
    if named is not None:
        require_known(named, FORMATS, what="format")
        return named
    return ENDINGS.get(path.suffix.lower(), "lines") if path is not None else "lines"


def read_document(content: bytes, *, path: Path, kind: str, languages: Languages) -> Document:
    """Return a document of this format; errors name `path`."""
    return READERS[kind](decoded(content, path=path), path, languages)


def decoded(content: bytes, *, path: Path) -> str:
    """Return the text of a document, which must be UTF-8."""
    if b"\0" in content:
        line = content[: content.index(0)].count(b"\n") + 1
        raise DataError(
            "a NUL byte", path=path, line=line, remedy="Is this UTF-8 text? Convert or repair it."
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(
            f"invalid UTF-8 (0x{content[error.start]:02x})",
            path=path,
            line=line,
            remedy="Convert the file to UTF-8, for example: iconv -f LATIN1 -t UTF-8.",
        ) from None


PAIR_FORMATS = ("tmx", "po", "xliff", "jsonl")
FIELDS = '{"source": "...", "target": "..."} or {"translation": {"en": "...", "de": "..."}}'


class PlacedPair(NamedTuple):
    """A pair and the line on which it begins."""

    line: int
    source: str
    target: str


def holds_pairs(path: Path) -> bool:
    """Return whether a file has the ending of a format with both languages."""
    return format_of(Path(path.name.removesuffix(".gz"))) in PAIR_FORMATS


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
    for number, line in enumerate(read_lines(path, expected=f"lines such as {FIELDS}"), 1):
        if not line.strip():
            continue
        record = read_object(line, path=path, line=number)
        sides = _sides(record)
        if not all(isinstance(side, str) and side.strip() for side in sides) or len(sides) != 2:
            raise DataError(
                "the line has no source and target",
                path=path,
                line=number,
                remedy=f"It should look like {FIELDS}.",
            )
        yield number, *(" ".join(side.split()) for side in sides)  # type: ignore[misc]


def _sides(record: dict[str, Any]) -> list[Any]:
    both = record.get("translation")
    if isinstance(both, dict):
        return list(both.values())
    return [record.get("source"), record.get("target")]
