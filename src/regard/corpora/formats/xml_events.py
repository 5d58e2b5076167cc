"""XML as a list of events with their places in the file, so that the rest can be kept unchanged.

The parser is expat, which reads no other files. Documents that declare entities or default
attributes are refused, because those can grow without bound or refer to other files.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import escape

from regard.base.budgets import SHOWN, Meter
from regard.base.errors import DataError
from regard.corpora.formats.document import Segment
from regard.corpora.formats.inline import Tag, paired, peeled
from regard.corpora.formats.placeholders import find_placeholders

DECLARED = re.compile(r"\s*<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']+)")

XmlKind = Literal["start", "end", "text", "cdata", "other"]
# The role of a tag inside a text: an element with text, one tag of a pair (open or close, with the
# key of the pair), or a single tag.
Role = tuple[Literal["element", "open", "close", "alone"], str]


@dataclass(slots=True)
class XmlEvent:
    """A piece of an XML document, from byte `start` to byte `end`."""

    kind: XmlKind
    start: int
    line: int
    name: str = ""
    text: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    end: int = 0
    closed: int = 0
    """The index of the end of an element, for its start."""

    @property
    def local(self) -> str:
        """The name without its prefix."""
        return self.name.rpartition(":")[2]


class XmlText:
    """An XML document: its bytes and its events in order."""

    def __init__(self, content: str, *, path: Path):
        declared = DECLARED.match(content.removeprefix("\ufeff"))
        if declared and declared[1].lower() not in ("utf-8", "utf8"):
            raise DataError(
                f"the file declares the encoding {declared[1]}",
                path=path,
                line=1,
                remedy="Convert it to UTF-8, with encoding='utf-8' in its first line.",
            )
        self._bytes = content.encode()
        self._path = path
        self.events: list[XmlEvent] = []
        self._parse()

    def raw(self, start: int, end: int) -> str:
        """Return the text of the file between two places."""
        return self._bytes[start:end].decode()

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._bytes)

    def _parse(self) -> None:
        parser = safe_parser(self._path)
        meter = Meter(self._path)
        meter.take(bytes=self.size)
        opened: list[XmlEvent] = []

        def add(kind: XmlKind, **facts: object) -> None:
            place = parser.CurrentByteIndex
            if self.events:
                self.events[-1].end = place
            meter.take(items=1)
            self.events.append(XmlEvent(kind, place, parser.CurrentLineNumber, **facts))  # type: ignore[arg-type]

        def start(name: str, found: Mapping[str, str]) -> None:
            meter.enter()
            meter.take(items=len(found))
            add("start", name=name, attributes=found)
            opened.append(self.events[-1])

        def end(name: str) -> None:
            meter.leave()
            add("end", name=name)
            opened.pop().closed = len(self.events) - 1

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = lambda text: add("text", text=text)
        parser.StartCdataSectionHandler = lambda: add("cdata")
        parser.EndCdataSectionHandler = lambda: add("cdata")
        parser.DefaultHandler = lambda text: add("other")
        parse_safely(parser, self._bytes, path=self._path)
        if self.events:
            self.events[-1].end = self.size


def safe_parser(path: Path) -> expat.XMLParserType:
    """Return a parser that refuses what lets a small document grow without bound."""
    parser = expat.ParserCreate("utf-8")

    def refuse(what: str, name: str) -> NoReturn:
        raise DataError(
            f"the document declares {what} ({name[:SHOWN]})",
            path=path,
            line=parser.CurrentLineNumber,
            remedy="Such declarations are refused, as they can refer to other files or grow "
            "without bound; write out their text.",
        )

    def attribute(element: str, name: str, kind: str, default: str | None, needed: int) -> None:
        if default is not None:
            refuse("a default attribute", f"{element[:SHOWN]} {name}")

    parser.EntityDeclHandler = lambda name, *_: refuse("an entity", name)
    parser.AttlistDeclHandler = attribute
    return parser


def parse_safely(parser: expat.XMLParserType, content: bytes, *, path: Path) -> None:
    """Parse a whole document; an error names its line."""
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DataError(
            f"not well-formed XML at column {error.offset + 1} ({expat.ErrorString(error.code)})",
            path=path,
            line=error.lineno,
            remedy="Repair the file; an XML editor shows the place.",
        ) from None


def content_of(document: XmlText, start: int) -> "XmlSlice":
    """Return what is inside the element that starts at this index."""
    first = start + 1
    return XmlSlice(document, document.events[first : document.events[start].closed], first)


@dataclass(frozen=True)
class XmlSlice:
    """The events inside an element, from index `first`; without the document, tags are empty."""

    document: XmlText | None
    events: Sequence[XmlEvent]
    first: int


def write_xml(text: str) -> str:
    """Return a text escaped for XML."""
    return escape(text)


def plain_text(content: XmlSlice, role: Callable[[XmlEvent], Role]) -> str:
    """Return the text of an element's content, without tags and native codes."""
    text, _ = _read(replace(content, document=None), role)
    return text


def content_parts(content: XmlSlice, role: Callable[[XmlEvent], Role]) -> list[str | Segment]:
    """Return the content of an element: a segment with its tags, and the tags around it."""
    text, tags = _read(content, role)
    if not text.strip():
        return ["".join(tag.raw for tag in tags)] if tags else []
    pairs = paired(tags)
    first, last = peeled(text, pairs)
    segment = Segment(
        text,
        write=write_xml,
        tags=paired(pairs[first:last]),
        line=content.events[0].line,
        protected=tuple(find_placeholders(text)),
    )
    before, behind = ("".join(tag.raw for tag in outer) for outer in (pairs[:first], pairs[last:]))
    return [before, segment, behind]


def _read(content: XmlSlice, role: Callable[[XmlEvent], Role]) -> tuple[str, list[Tag]]:
    """Return the text of an element and its tags."""
    events, document = content.events, content.document

    def raw(start: int, end: int) -> str:
        return document.raw(start, end) if document is not None else ""

    texts: list[str] = []
    tags: list[Tag] = []
    place = skipped = 0
    for number, event in enumerate(events, content.first):
        if number < skipped:
            continue
        if event.kind == "text":
            texts.append(event.text)
            place += len(event.text)
        elif event.kind == "other":
            tags.append(Tag(place, raw(event.start, event.end)))
        elif event.kind == "end":
            tags.append(Tag(place, raw(event.start, event.end), "close", f"</{event.name}>"))
        elif event.kind == "start":
            what, pair = role(event)
            if what == "element":
                tags.append(Tag(place, raw(event.start, event.end), "open", f"</{event.name}>"))
            else:
                last = events[event.closed - content.first]
                tags.append(Tag(place, raw(event.start, last.end), what, pair))
                skipped = event.closed + 1
    return "".join(texts), tags
