"""The registry of document formats by name and file ending, and the sentence pairs in them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from regard.base.errors import DataError
from regard.corpora.formats.document import Document, Languages, read_paragraphs
from regard.corpora.formats.html import read_html
from regard.corpora.formats.inline import nesting
from regard.corpora.formats.markdown import read_markdown
from regard.corpora.formats.office import read_docx, read_epub, read_odt
from regard.corpora.formats.packages import PackageDocument
from regard.corpora.formats.po import po_pairs, read_po
from regard.corpora.formats.restructured_text import read_restructured_text
from regard.corpora.formats.srt import read_srt
from regard.corpora.formats.tmx import read_tmx, tmx_pairs
from regard.corpora.formats.xliff import read_xliff, xliff_pairs
from regard.corpora.lines import read_whole, unpacked_name
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
    ".md": "markdown",
    ".markdown": "markdown",
    ".rst": "rst",
    ".docx": "docx",
    ".odt": "odt",
    ".epub": "epub",
}

# Inside one paragraph: the time for placing tags is quadratic in their number.
MOST_TAGS, DEEPEST_TAGS = 1_000, 100

Reader: TypeAlias = Callable[[str, Path, Languages], Document]

# Formats that are read as a whole.
READERS: dict[str, Reader] = {
    "text": read_paragraphs,
    "tmx": read_tmx,
    "po": read_po,
    "xliff": read_xliff,
    "srt": read_srt,
    "html": read_html,
    "markdown": read_markdown,
    "rst": read_restructured_text,
}
# Zip archives, which are read from their bytes.
PACKAGES: dict[str, Callable[[bytes, Path, Languages], PackageDocument]] = {
    "docx": read_docx,
    "odt": read_odt,
    "epub": read_epub,
}
FORMATS = (*LINE_FORMATS, *READERS, *PACKAGES)


def format_of(path: Path | None, *, named: str | None = None) -> str:
    """Return the named format, or the format of the file ending, or "lines"."""
    if named is not None:
        require_known(named, FORMATS, what="format")
        return named
    return ENDINGS.get(path.suffix.lower(), "lines") if path is not None else "lines"


def read_document(
    content: bytes, *, path: Path, kind: str, languages: Languages, fuzzy: bool = True
) -> Document | PackageDocument:
    """Return a document of this format; errors name `path`.

    `fuzzy` marks the translations of a PO file for a person to check.
    """
    document: Document | PackageDocument
    if kind in PACKAGES:
        document = PACKAGES[kind](content, path, languages)
    elif kind == "po":
        document = read_po(decoded(content, path=path), path, languages, fuzzy=fuzzy)
    else:
        document = READERS[kind](decoded(content, path=path), path, languages)
    for segment in document.segments:
        if len(segment.tags) > MOST_TAGS or nesting(segment.tags) > DEEPEST_TAGS:
            raise DataError(
                f"a paragraph has {len(segment.tags):,} tags inside it",
                path=path,
                line=segment.line,
                remedy=f"At most {MOST_TAGS:,} can be placed in a translation, nested "
                f"{DEEPEST_TAGS} deep: split the paragraph, or remove some.",
            )
    return document


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


NO_LANGUAGES = Languages()


class PlacedPair(NamedTuple):
    """A pair and the line on which it begins."""

    line: int
    source: str
    target: str


def document_pairs(path: Path, *, languages: Languages = NO_LANGUAGES) -> list[PlacedPair]:
    """Return the pairs of a TMX, PO or XLIFF file; units without a translation are left out."""
    kind = format_of(Path(unpacked_name(path)))
    content = decoded(read_whole(path, expected="sentence pairs"), path=path)
    found = [PlacedPair(*pair) for pair in _pairs(kind, content, path, languages)]
    if not found:
        raise DataError(
            "the file holds no translated sentence",
            path=path,
            remedy="Both languages are needed to learn from it.",
        )
    return found


def _pairs(
    kind: str, content: str, path: Path, languages: Languages
) -> Iterator[tuple[int, str, str]]:
    if kind == "tmx":
        return tmx_pairs(content, path=path, languages=languages)
    return po_pairs(content, path=path) if kind == "po" else xliff_pairs(content, path=path)
