"""The formats of documents by their names, and the format of a file by its ending."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from regard.base.errors import DataError
from regard.corpora.documents.document import Document, Languages
from regard.corpora.documents.html import read_html
from regard.corpora.documents.paragraphs import read_paragraphs
from regard.corpora.documents.po import read_po
from regard.corpora.documents.srt import read_srt
from regard.corpora.documents.tmx import read_tmx
from regard.corpora.documents.xliff import read_xliff
from regard.settings.suggest import require_known

# Read line by line, at any size; all others are read as a whole.
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
    """Return the format that was named, or else the one of the file's ending, or else lines."""
    if named is not None:
        require_known(named, FORMATS, what="format")
        return named
    return ENDINGS.get(path.suffix.lower(), "lines") if path is not None else "lines"


def read_document(content: bytes, *, path: Path, kind: str, languages: Languages) -> Document:
    """Return a document of this format; `path` says in errors where it came from."""
    return READERS[kind](decoded(content, path=path), path, languages)


def decoded(content: bytes, *, path: Path) -> str:
    """Return the text of a document, which must be UTF-8."""
    if b"\0" in content:
        line = content[: content.index(0)].count(b"\n") + 1
        raise DataError(
            "a NUL byte", path=path, line=line, remedy="Is this UTF-8 text? Convert or mend it."
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
