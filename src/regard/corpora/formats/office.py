"""Documents that are ZIP packages: DOCX (Office Open XML), ODT (OpenDocument) and books (EPUB).

The first two are read with the XML parser of the other formats, which knows the place of every
byte, so the markup around the texts stays exactly as it was. Office libraries write all of it anew.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from regard.corpora.formats import xml_events as xml
from regard.corpora.formats.document import Document, Languages, Segment
from regard.corpora.formats.html import read_html
from regard.corpora.formats.inline import Tag, paired
from regard.corpora.formats.packages import PackageDocument, entry_text, read_package

WORD_TEXTS = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml")
ODT_TEXTS = ("content.xml", "styles.xml")
# Elements of a paragraph whose content belongs to its text.
CONTAINERS = frozenset(["hyperlink", "ins", "smartTag", "fldSimple"])
TagKind = Literal["open", "close", "alone"]
# Noncharacters around the number of a mark, until runs are made of a translation.
MARK = re.compile("\ufdd3([0-9]{1,6})\ufdd4")
# Tabs and line breaks, which are a space to the model.
GAPS = frozenset(["tab", "br", "cr", "ptab"])
GAP = re.compile(" ?\ufdd5([0-9]{1,6})\ufdd4 ?")
ODT_GAPS = frozenset(["text:tab", "text:line-break"])


def read_docx(content: bytes, path: Path, languages: Languages) -> PackageDocument:
    """Return a Word document with its paragraphs as segments."""

    def read(name: str, inside: bytes) -> Document | None:
        if WORD_TEXTS.fullmatch(name) is None:
            return None
        return _paragraphs(entry_text(inside, name, path), path)

    return read_package(content, path, read, needed="word/document.xml")


def _paragraphs(text: str, path: Path) -> Document:
    document = xml.XmlText(text, path=path)
    parts: list[str | Segment] = []
    index = place = 0
    while index < len(document.events):
        event = document.events[index]
        if event.kind == "start" and event.local == "p":
            last = event.closed
            segment = _Paragraph(document, index, last).segment()
            if segment is not None:
                start, end = segment.span
                parts += [document.raw(place, start), segment.text]
                place = end
            index = last
        index += 1
    return Document((*parts, document.raw(place, document.size)))


@dataclass(frozen=True)
class _PlacedParagraph:
    """The segment of a paragraph, and from which byte to which it goes."""

    text: Segment
    span: tuple[int, int]


@dataclass
class _Part:
    """A mark in a paragraph: a change of format, the tag of a container, or something else."""

    kind: Literal["format", "end", "markup", "gap"]
    raw: str = ""


@dataclass
class _Paragraph:
    """A paragraph of Word: runs of text, each with its format, and other things between them."""

    document: xml.XmlText
    first: int
    last: int
    texts: list[tuple[str, str]] = field(default_factory=list)  # text and format of each run
    tags: list[tuple[int, TagKind, str, _Part]] = field(default_factory=list)
    length: int = 0

    def segment(self) -> _PlacedParagraph | None:
        """Return the paragraph as a segment, or None if it has no words."""
        events = self.document.events
        start = self.first + 1
        if start < self.last and events[start].local == "pPr":
            start = events[start].closed + 1
        self._content(start, self.last)
        text = "".join(text for text, _ in self.texts)
        if not any(letter.isalpha() for letter in text):
            return None
        begin, end = events[start].start, events[self.last].start
        base = max({f for _, f in self.texts}, key=lambda f: self._length(f))
        tags, marks = self._marked(base)
        prefix = events[self.first].name.removesuffix("p")
        runs = _Runs(prefix, base, marks)
        segment = Segment(
            text,
            write=xml.write_xml,
            arrange=runs.written,
            tags=tags,
            line=events[self.first].line,
            raw=self.document.raw(begin, end),
        )
        return _PlacedParagraph(segment, (begin, end))

    def _mark(self, kind: TagKind, name: str, part: _Part) -> None:
        """Add a mark behind the text so far."""
        self.tags.append((self.length, kind, name, part))

    def _length(self, form: str) -> int:
        return sum(len(text) for text, other in self.texts if other == form)

    def _content(self, start: int, last: int) -> None:
        """Read the children from `start` to `last`."""
        events, index = self.document.events, start
        while index < last:
            event = events[index]
            end = event.closed if event.kind == "start" else index
            if event.kind == "start" and event.local == "r":
                self._run(index, end)
            elif event.kind == "start" and event.local in CONTAINERS:
                opening = self.document.raw(event.start, event.end)
                closing = self.document.raw(events[end].start, events[end].end)
                self._mark("open", f"c{index}", _Part("markup", opening))
                self._content(index + 1, end)
                self._mark("close", f"c{index}", _Part("markup", closing))
            else:
                raw = self.document.raw(event.start, events[end].end)
                self._mark("alone", "", _Part("markup", raw))
            index = end + 1

    def _run(self, first: int, last: int) -> None:
        """Read a run: its format, its texts, and other things in it, which become runs alone."""
        events = self.document.events
        opening = self.document.raw(events[first].start, events[first].end)
        closing = f"</{events[first].name}>"
        form, index = "", first + 1
        while index < last:
            event = events[index]
            end = event.closed if event.kind == "start" else index
            raw = self.document.raw(event.start, events[end].end)
            if event.local == "rPr":
                form = raw
            elif event.local == "t":
                text = "".join(e.text for e in events[index:end] if e.kind == "text")
                name = f"r{len(self.texts)}"
                self._mark("open", name, _Part("format", form))
                self.texts.append((text, form))
                self.length += len(text)
                self._mark("close", name, _Part("end"))
            else:
                kind: Literal["gap", "markup"] = "gap" if event.local in GAPS else "markup"
                self._mark("alone", "", _Part(kind, f"{opening}{form}{raw}{closing}"))
                if kind == "gap":
                    self.texts.append((" ", form))
                    self.length += 1
            index = end + 1

    def _marked(self, base: str) -> tuple[tuple[Tag, ...], list[_Part]]:
        """Return the tags of the text, those of the usual format left out, and what they mean."""
        tags: list[Tag] = []
        marks: list[_Part] = []
        plain = {f"r{number}" for number, (_, form) in enumerate(self.texts) if form == base}
        for place, kind, name, part in self.tags:
            if name not in plain:
                sign = "\ufdd5" if part.kind == "gap" else "\ufdd3"
                tags.append(Tag(place, f"{sign}{len(marks)}\ufdd4", kind, name))
                marks.append(part)
        return paired(tags), marks


@dataclass(frozen=True)
class _Runs:
    """Makes runs of a translation with marks in it."""

    prefix: str
    base: str
    marks: Sequence[_Part]

    def written(self, text: str) -> str:
        """Return the content of the paragraph."""
        forms, out = [self.base], []
        text = GAP.sub("\ufdd3\\1\ufdd4", text)
        for number, piece in enumerate(MARK.split(text)):
            if number % 2 == 0:
                out.append(self._run(piece, forms[-1]) if piece else "")
                continue
            if int(piece) >= len(self.marks):  # the file itself has such characters
                continue
            mark = self.marks[int(piece)]
            if mark.kind == "format":
                forms.append(mark.raw)
            elif mark.kind == "end" and len(forms) > 1:
                forms.pop()
            out.append(mark.raw if mark.kind in ("markup", "gap") else "")
        return "".join(out)

    def _run(self, text: str, form: str) -> str:
        p = self.prefix
        return f'<{p}r>{form}<{p}t xml:space="preserve">{text}</{p}t></{p}r>'


def read_odt(content: bytes, path: Path, languages: Languages) -> PackageDocument:
    """Return an OpenDocument text with its paragraphs and headings as segments."""

    def read(name: str, inside: bytes) -> Document | None:
        if name not in ODT_TEXTS:
            return None
        return marked_texts(entry_text(inside, name, path), path, elements=("text:p", "text:h"))

    return read_package(content, path, read, needed="content.xml")


def marked_texts(text: str, path: Path, *, elements: Sequence[str]) -> Document:
    """Return an XML text with the content of these elements as segments."""
    document = xml.XmlText(text, path=path)
    parts: list[str | Segment] = []
    index = place = 0
    while index < len(document.events):
        event = document.events[index]
        if event.kind == "start" and event.name in elements:
            last = event.closed
            for inside in _between_gaps(xml.content_of(document, index)):
                begin, end = inside.events[0].start, inside.events[-1].end
                found = _with_raw(xml.content_parts(inside, role), document.raw(begin, end))
                parts += [document.raw(place, begin), *found]
                place = end
            index = last
        index += 1
    return Document((*parts, document.raw(place, document.size)))


def _between_gaps(content: xml.XmlSlice) -> Iterator[xml.XmlSlice]:
    """Yield the texts of a paragraph, which tabs and line breaks separate."""
    begin = depth = 0
    events = content.events
    for place, event in enumerate(events):
        gap = depth == 0 and event.kind == "start" and event.name in ODT_GAPS
        if gap:
            yield from _with_words(content, begin, place)
            begin = event.closed - content.first + 1
        depth += (event.kind == "start") - (event.kind == "end")
    yield from _with_words(content, begin, len(events))


def _with_words(content: xml.XmlSlice, begin: int, end: int) -> Iterator[xml.XmlSlice]:
    inside = content.events[begin:end]
    if any(letter.isalpha() for e in inside if e.kind == "text" for letter in e.text):
        yield xml.XmlSlice(content.document, inside, content.first + begin)


def role(event: xml.XmlEvent) -> xml.Role:
    """Return the role of a tag inside a paragraph of an OpenDocument text."""
    return ("element", "") if event.local in ("span", "a", "meta") else ("alone", "")


def _with_raw(parts: list[str | Segment], raw: str) -> list[str | Segment]:
    """Return parts whose segment knows how the file writes it."""
    if len(parts) != 3 or not isinstance(parts[1], Segment):
        return [raw]
    before, segment, behind = str(parts[0]), parts[1], str(parts[2])
    return [replace(segment, raw=raw, arrange=lambda written: f"{before}{written}{behind}")]


# A book: its pages, as HTML, and the titles of its table of contents.
PAGES = (".xhtml", ".html", ".htm")
LANGUAGE = re.compile(r"(<(?:\w+:)?language\b[^>]*>)([^<]*)(?=</)")


def read_epub(content: bytes, path: Path, languages: Languages) -> PackageDocument:
    """Return a book with the texts of its pages as segments, in the target language if known."""

    def read(name: str, inside: bytes) -> Document | None:
        lowered = name.lower()
        if lowered.endswith(PAGES):
            return read_html(entry_text(inside, name, path), Path(f"{path}/{name}"), languages)
        if lowered.endswith(".ncx"):
            return marked_texts(entry_text(inside, name, path), path, elements=("text", "ncx:text"))
        if lowered.endswith(".opf") and languages.target:
            text = entry_text(inside, name, path)
            return Document((LANGUAGE.sub(rf"\g<1>{languages.target}", text, count=1),))
        return None

    return read_package(content, path, read, needed="META-INF/container.xml")
