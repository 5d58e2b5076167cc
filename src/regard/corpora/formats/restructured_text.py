"""reStructuredText: titles, paragraphs, items, fields and the texts of notes.

Directives other than notes, literal blocks, tables, comments, targets and doctests are kept, and so
are roles, literals and references inside a text. Lines under and over a title grow with it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

from regard.base.budgets import Meter
from regard.corpora.formats.document import Document, Languages, Segment
from regard.corpora.formats.light_markup import (
    MarkupSpan,
    SourceLines,
    emphasis,
    escaped,
    markup_segment,
    require_paragraph,
)
from regard.corpora.formats.placeholders import Span

# Directives whose body is text; the argument of some is text as well.
NOTES = frozenset(
    ["attention", "caution", "danger", "error", "hint", "important", "note", "tip", "warning",
     "seealso", "todo", "epigraph", "highlights", "pull-quote", "compound", "container"]
)  # fmt: skip
TITLED = NOTES | {"admonition", "topic", "sidebar", "rubric", "centered"}
VERSIONS = frozenset(["versionadded", "versionchanged", "versionremoved", "deprecated"])
FIGURES = frozenset(
    ["figure", "class", "function", "method", "attribute", "data", "exception", "describe",
     "option", "glossary", "only", "tab", "tab-set", "grid"]
)  # fmt: skip
DIRECTIVE = re.compile(r"\.\. +(?:py:|c:|cpp:|js:)?([\w-]+)::(?: +|$)")
NUMBERED_NOTE = re.compile(r"\.\. \[[^\]]+\] +")
OPTION = re.compile(r":[\w-]+:(?:\s|$)")
ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*")
SIMPLE_TABLE = re.compile(r"=+(?: +=+)+")
COMMAND_OPTION = re.compile(r"(?:--?[A-Za-z0-9]|/[A-Z])[\w-]*(?:[ =,]|$)")
ITEM = re.compile(
    r"[-*+\u2022\u2023\u2043] +|\(?(?:\d+|#|[A-Za-z]|[ivxlcdmIVXLCDM]+)[.)] +|"
    r":(?![\s:])(?:[^:`\\]|`[^`]*`_{0,2}|\\.)+:(?: +|$)|\| +"
)

ROLE = re.compile(r"(?<![\w`]):[\w:.+-]+:`[^`]+`|`[^`<>]+`:[\w:.+-]+:")
LITERAL = re.compile(r"``.+?``")
LINK = re.compile(r"`([^`<>]+?)(\s+<[^`<>]+>`__?)(?!\w)")
KEPT = (
    re.compile(r"_?`[^`]+`_{0,2}"),
    re.compile(r"\|[^|\s][^|]*\|_{0,2}"),
    re.compile(r"\[(?:\d+|#[\w-]*|\*|[A-Za-z][\w.-]*)\]_(?!\w)"),
    re.compile(r"(?<![\w\\])[A-Za-z0-9][\w.-]{0,80}?_{1,2}(?!\w)"),
    re.compile(r"(?<!\S)\S*\\\S+"),
)
EMPHASIS = re.compile(r"\*{1,2}")
LAST_UNDERSCORE = re.compile(r"(?<=\w)_(?=\W|$)")


def read_restructured_text(content: str, path: Path, languages: Languages) -> Document:
    """Return a text with its titles, paragraphs and items as segments."""
    Meter(path).take(bytes=len(content))
    lines = re.findall(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+", content)
    return Document(tuple(part for part in _RstLines(lines, path).parts() if part != ""))


class _RstLines:
    """The lines of a file, of which each belongs to a text or is kept."""

    def __init__(self, lines: list[str], path: Path):
        self._lines = lines
        self._path = path
        self._place = 0
        self._options = False

    def parts(self) -> Iterator[str | Segment]:
        """Yield kept lines and texts in their order."""
        while self._place < len(self._lines):
            bare = self._bare(self._place)
            if not bare:
                self._options = False
                yield self._kept(self._place + 1)
            elif bare == ".." or bare.startswith(".. "):
                yield from self._explicit(bare)
            elif self._options and OPTION.match(bare):
                yield self._kept(self._place + 1)
            elif SIMPLE_TABLE.fullmatch(bare):
                yield self._kept(self._table_end())
            elif bare.startswith((">>>", "+-", "+=", "__ ", ":type ", ":rtype:")):
                yield self._kept(self._block_end() if bare[0] != ":" else self._place + 1)
            elif COMMAND_OPTION.match(bare):
                yield self._kept(self._block_end())
            elif title := self._title():
                yield from title
            elif ADORNMENT.fullmatch(bare):
                yield self._kept(self._place + 1)
            else:
                yield from self._paragraph(0)

    def _bare(self, place: int) -> str:
        return self._lines[place].strip() if place < len(self._lines) else ""

    def _indent(self, place: int) -> int:
        line = self._lines[place].expandtabs(8)
        return len(line) - len(line.lstrip())

    def _kept(self, end: int) -> str:
        """Return the lines up to `end` as they are, and go there."""
        kept = "".join(self._lines[self._place : end])
        self._place = end
        return kept

    def _block_end(self) -> int:
        """Return the next blank line."""
        end = self._place
        while self._bare(end):
            end += 1
        return end

    def _body_end(self, start: int, indent: int) -> int:
        """Return the first line behind `start` that is not blank and not indented more."""
        end = start
        while end < len(self._lines) and (not self._bare(end) or self._indent(end) > indent):
            end += 1
        return end

    def _table_end(self) -> int:
        """Return the line behind the last border of a table."""
        end = self._place + 1
        while end < len(self._lines):
            border = SIMPLE_TABLE.fullmatch(self._bare(end))
            end += 1
            if border and not self._bare(end):
                return end
        return end

    def _explicit(self, bare: str) -> Iterator[str | Segment]:
        """Yield a directive, a footnote, a comment or a target."""
        directive, indent = DIRECTIVE.match(bare), self._indent(self._place)
        if note := NUMBERED_NOTE.match(bare):
            yield from self._paragraph(note.end())
        elif directive is None or directive[1] not in TITLED | VERSIONS | FIGURES:
            yield self._kept(self._body_end(self._place + 1, indent))
        else:
            self._options = True
            text = bare[directive.end() :]
            skipped = directive.end()
            if directive[1] in VERSIONS:
                skipped += len(text.split(" ")[0]) + 1
            if directive[1] not in FIGURES and len(bare) > skipped:
                yield from self._paragraph(skipped)
            else:
                yield self._kept(self._place + 1)

    def _title(self) -> list[str | Segment] | None:
        """Return a title with the lines under and over it, None if there is none here."""
        place, over = self._place, ""
        if ADORNMENT.fullmatch(self._bare(place)) and self._bare(place + 1):
            over, place = self._lines[place], place + 1
        text, under = self._bare(place), self._bare(place + 1)
        if not text or not under or ADORNMENT.fullmatch(under) is None or ADORNMENT.fullmatch(text):
            return None
        wide = len(under) >= min(_width(text), 4) and len(under) >= _width(text) - 2
        if not wide or (over and over.strip() != under) or self._indent(place + 1):
            return None
        line = self._lines[place]
        start, end = line.index(text), line.index(text) + len(text)
        lines = SourceLines((text,), (), place + 1)
        extra = len(under) - _width(text)
        behind = line[end:] + self._lines[place + 1]

        def arrange(title: str) -> str:
            mark = under[0] * max(_width(title) + extra, _width(title))
            return "".join(
                (over.replace(under, mark), line[:start], title, behind.replace(under, mark))
            )

        raw = self._kept(place + 2)
        return [_segment(lines, arrange) or raw]

    def _paragraph(self, skipped: int) -> Iterator[str | Segment]:
        """Yield the text from here on, `skipped` characters behind the start of the line."""
        first = self._place
        line, indent = self._lines[first], self._indent(first)
        start = len(line) - len(line.lstrip()) + skipped
        while item := ITEM.match(line.rstrip("\r\n"), start):
            start = item.end()
        marked = start > len(line) - len(line.lstrip())
        end = first + 1
        alone = line[:start].endswith("| ") or not line[start:].strip()
        while self._bare(end) and not alone:
            deeper = self._indent(end) - indent
            if (deeper > 0) != marked or (not marked and deeper) or self._option_line(end, skipped):
                break
            if self._bare(end).startswith("| "):
                break
            end += 1
        texts = [line[start:].strip(), *(self._bare(place) for place in range(first + 1, end))]
        whole = "".join(self._lines[first:end])
        require_paragraph(whole, path=self._path, line=first + 1)
        self._place = end
        literal = texts[-1].endswith("::")
        texts[-1] = texts[-1].removesuffix("::").rstrip() if literal else texts[-1]
        texts = [text for text in texts if text]
        places, cursor = [], start
        for text in texts:
            cursor = whole.index(text, cursor)
            places.append((cursor, cursor + len(text)))
            cursor += len(text)
        if places:
            joints = [whole[before[1] : after[0]] for before, after in pairwise(places)]
            lines = SourceLines(tuple(texts), tuple(joints), first + 1)
            yield whole[: places[0][0]]
            yield _segment(lines) or lines.raw
            yield whole[places[-1][1] :]
        else:
            yield whole
        if literal:
            following = end
            while following < len(self._lines) and not self._bare(following):
                following += 1
            yield self._kept(max(following, self._body_end(following, indent)))

    def _option_line(self, place: int, skipped: int) -> bool:
        """Return whether a line below a directive is one of its options."""
        return bool(skipped and OPTION.match(self._bare(place)))


def _segment(lines: SourceLines, arrange: Callable[[str], str] = str) -> Segment | None:
    marks, kept = _inline(lines.joined)
    write = partial(_written, source=lines.joined)
    return markup_segment(lines, marks, kept, write=write, arrange=arrange)


def _inline(text: str) -> tuple[list[MarkupSpan], list[Span]]:
    """Return the marks of a text, and the places in it that stay as they are."""
    kept: list[Span] = []
    marks: list[MarkupSpan] = []

    def take(pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        nonlocal text
        yield from pattern.finditer(text)
        text = pattern.sub(lambda match: "x" * len(match[0]), text)

    for pattern in (LITERAL, ROLE):
        kept += [match.span() for match in take(pattern)]
    for link in LINK.finditer(text):
        name = f"`{link.start()}"
        marks.append(MarkupSpan(link.start(), link.start() + 1, "open", name))
        marks.append(MarkupSpan(*link.span(2), "close", name))
        text = f"{text[: link.start()]} {link[1]}{'x' * len(link[2])}{text[link.end() :]}"
    for pattern in KEPT:
        kept += [match.span() for match in take(pattern)]
    return [*marks, *emphasis(text, list(EMPHASIS.finditer(text)))], kept


def _written(text: str, *, source: str) -> str:
    """Return a text in which nothing is taken for markup that its source does not have."""
    text = escaped(text, marks="\\*`|", source=source)
    if LAST_UNDERSCORE.search(source) is None:
        text = LAST_UNDERSCORE.sub(r"\\_", text)
    return text


def _width(text: str) -> int:
    """Return the number of columns of a text; letters of some scripts take two."""
    return sum(
        2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
        if not unicodedata.combining(letter)
    )
