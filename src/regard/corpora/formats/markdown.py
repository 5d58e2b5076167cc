"""Markdown (CommonMark with tables): headings, paragraphs, list items, quotations and cells.

The block structure is that of markdown-it-py (the Executable Books project), which says in which
lines a text is. Code, links' targets, front matter, reference definitions and HTML are kept.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from regard.base.budgets import Meter
from regard.base.errors import SettingsError
from regard.corpora.formats.document import Document, Languages, Segment
from regard.corpora.formats.html import EMPTY, INLINE, read_html
from regard.corpora.formats.light_markup import (
    MarkupSpan,
    SourceLines,
    blanked,
    emphasis,
    escaped,
    markup_segment,
    require_paragraph,
)
from regard.corpora.formats.placeholders import Span, closing_places

LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*\r?$\n?", re.M | re.S)
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
ESCAPED_WORD = re.compile(r"(?<!\S)\S*\\[!-/:-@\[-`{-~]\S*")
AUTOLINK = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[^\s<>@]+@[^\s<>]+)>")
TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)(?:\s[^<>]*)?/?>|<!--.*?-->")
FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]")
EMPHASIS = re.compile(r"\*{1,3}|_{1,3}|~~")
TASK = re.compile(r"\[[ xX]\]\s+")
MARKS = "\\*_`[]<>~"


def read_markdown(content: str, path: Path, languages: Languages) -> Document:
    """Return a text with its headings, paragraphs, items and cells as segments."""
    Meter(path).take(bytes=len(content))
    head = FRONT_MATTER.match(content)
    start = head.end() if head else 0
    lines = LINE.findall(content[start:])
    parts: list[str | Segment] = [content[:start]]
    reading = _MarkdownLines(lines, content[:start].count("\n") + 1)
    environment: dict[str, Any] = {}
    tokens = _parser().parse(content[start:], environment)
    labels = frozenset(environment.get("references", {}))
    for token in tokens:
        if token.map is None:
            continue
        if token.type == "html_block" and token.level == 0:
            first, last = token.map
            inside = read_html("".join(lines[first:last]), path, languages)
            parts += [reading.up_to(first, 0), *inside.parts]
            reading.line, reading.column = last, 0
        elif token.type == "inline":
            require_paragraph(token.content, path=path, line=token.map[0] + 1)
            parts += reading.texts(token.content, token.map, labels)
    return Document((*(part for part in parts if part != ""), reading.rest()))


def _parser() -> Any:
    """Return the parser of blocks; what is inside a line is read here, for its places."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise SettingsError(
            "Markdown needs the package markdown-it-py, which is in the extra `documents`: "
            "see docs/install.md."
        ) from None
    return MarkdownIt("commonmark").enable("table").disable("inline")


class _MarkdownLines:
    """A place in the lines of a file, from which texts are found one after the other."""

    def __init__(self, lines: Sequence[str], first: int):
        self._lines = lines
        self._first = first
        self.line = self.column = 0

    def up_to(self, line: int, column: int) -> str:
        """Return everything between the current place and another, and go there."""
        if line == self.line:
            passed = self._lines[line][self.column : column] if line < len(self._lines) else ""
        else:
            between = self._lines[self.line + 1 : line]
            last = self._lines[line][:column] if line < len(self._lines) else ""
            passed = self._lines[self.line][self.column :] + "".join(between) + last
        self.line, self.column = line, column
        return passed

    def rest(self) -> str:
        """Return everything behind the current place."""
        return self.up_to(len(self._lines), 0) if self.line < len(self._lines) else ""

    def texts(
        self, content: str, lines: Sequence[int], labels: frozenset[str]
    ) -> Iterator[str | Segment]:
        """Yield the texts of a block, which hard line breaks separate, and what is before each."""
        found = self._places(content.split("\n"), lines[0])
        if found is None:
            return
        begin = 0
        for index, (_, _, hard) in enumerate(found):
            if hard or index == len(found) - 1:
                yield from self._text(found[begin : index + 1], labels)
                begin = index + 1

    def _places(self, texts: list[str], first: int) -> list[tuple[int, Span, bool]] | None:
        """Return for each line its number, where its text is, and whether its break is hard."""
        found = []
        for number, text in enumerate(texts, first):
            if number >= len(self._lines):
                return None
            line, bare = self._lines[number], text.strip()
            begin = self.column if number == self.line else 0
            whole = line.rstrip("\r\n \t")
            at = len(whole) - len(bare) if whole.endswith(bare) else line.find(bare, begin)
            if at < begin or (len(texts) == 1 and "|" in line[at + len(bare) :]):
                at = line.find(bare, begin)  # a cell, or a heading with marks behind it
            if at < begin:
                return None
            hard = text.endswith(("  ", "\\"))
            bare = bare.removesuffix("\\").rstrip() if hard else bare
            task = TASK.match(bare) if number == first else None
            skipped = task.end() if task else 0
            found.append((number, (at + skipped, at + len(bare)), hard))
        return found

    def _text(
        self, found: Sequence[tuple[int, Span, bool]], labels: frozenset[str]
    ) -> Iterator[str | Segment]:
        first, (start, _), _ = found[0]
        yield self.up_to(first, start)
        texts, joints = [], []
        for number, (begin, end), _ in found:
            if number != first:
                joints.append(self.up_to(number, begin))
            texts.append(self.up_to(number, end))
        lines = SourceLines(tuple(texts), tuple(joints), first + self._first)
        joined = lines.joined
        marks, kept = _inline(joined, labels)
        cell = "|" if "|" not in joined else ""
        write = partial(escaped, marks=MARKS + cell, source=joined)
        yield markup_segment(lines, marks, kept, write=write) or lines.raw


def _inline(text: str, labels: frozenset[str]) -> tuple[list[MarkupSpan], list[Span]]:
    """Return the marks of a text, and the places in it that stay as they are."""
    kept = [match.span() for match in CODE.finditer(text)]
    blank = blanked(text, kept)
    for pattern in (ESCAPED_WORD, AUTOLINK, FOOTNOTE):
        kept += [match.span() for match in pattern.finditer(blank)]
        blank = blanked(blank, kept)
    marks = []
    for tag in TAG.finditer(blank):
        name = (tag[1] or "").lower()
        paired_name = name in INLINE and name not in EMPTY and not tag[0].endswith("/>")
        kind = ("close" if tag[0][1] == "/" else "open") if paired_name else "alone"
        marks.append(MarkupSpan(*tag.span(), kind, f"<{name}>"))  # type: ignore[arg-type]
    blank = blanked(blank, [(mark.start, mark.end) for mark in marks])
    links = list(_links(blank, labels))
    marks += [mark for link in links for mark in link]
    blank = blanked(blank, [(mark.start, mark.end) for link in links for mark in link])
    return [*marks, *emphasis(blank, list(EMPHASIS.finditer(blank)))], kept


def _links(text: str, labels: frozenset[str]) -> Iterator[tuple[MarkupSpan, MarkupSpan]]:
    """Yield the two marks around the text of each link and image."""
    opened: list[int] = []
    targets = closing_places(text, "(", ")")
    place = 0
    while place < len(text):
        if text[place] == "[":
            opened.append(place)
        elif text[place] == "]" and opened:
            start = opened.pop()
            image = text[:start].endswith("!")
            end, raw = _target(text, (start, place), targets, labels)
            if end:
                name = f"[{start}]"
                yield (
                    MarkupSpan(start - image, start + 1, "open", name),
                    MarkupSpan(place, end, "close", name, raw),
                )
                place = end - 1
        place += 1


def _target(
    text: str, brackets: Span, targets: dict[int, int], labels: frozenset[str]
) -> tuple[int, str | None]:
    """Return where the target of a link ends, 0 if there is none, and what is written for it."""
    start, close = brackets
    following = text[close + 1 : close + 2]
    if following == "(":
        return targets.get(close + 1, 0), None
    label = text[start + 1 : close]
    if following == "[":
        end = text.find("]", close + 2)
        if end == close + 2:  # [label][]: the label is translated, so it is named apart
            return end + 1, f"][{label}]"
        return (end + 1, None) if end > 0 else (0, None)
    known = " ".join(label.split()).lower().upper() in labels
    return (close + 1, f"][{label}]") if known else (0, None)
