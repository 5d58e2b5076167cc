"""XML as a list of events with their places in the file, so that the rest can be kept unchanged.

The parser is expat, which reads no other files. Documents that declare entities are refused,
because entities can grow without bound or refer to other files.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.parsers import expat
from xml.sax.saxutils import escape

from regard.base.errors import DataError
from regard.corpora.formats.document import Segment
from regard.corpora.formats.inline import Tag, paired, peeled

DECLARED = re.compile(r"\s*<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']+)")

Kind = Literal["start", "end", "text", "cdata", "other"]
# The role of a tag inside a text: an element with text, one tag of a pair (open or close, with the
# key of the pair), or a single tag.
Role = tuple[Literal["element", "open", "close", "alone"], str]


@dataclass
class Event:
    """A piece of an XML document, from byte `start` to byte `end`."""

    kind: Kind
    start: int
    line: int
    name: str = ""
    text: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    end: int = 0

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
        self.events: list[Event] = []
        self._parse()

    def raw(self, start: int, end: int) -> str:
        """Return the text of the file between two places."""
        return self._bytes[start:end].decode()

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self._bytes)

    def _parse(self) -> None:
        parser = expat.ParserCreate("utf-8")

        def add(kind: Kind, **facts: object) -> None:
            place = parser.CurrentByteIndex
            if self.events:
                self.events[-1].end = place
            self.events.append(Event(kind, place, parser.CurrentLineNumber, **facts))  # type: ignore[arg-type]

        def refuse(name: str, *_: object) -> None:
            raise DataError(
                f"the document declares an entity ({name})",
                path=self._path,
                line=parser.CurrentLineNumber,
                remedy="Entities are refused, as they can refer to other files or grow without "
                "bound; write out their text.",
            )

        parser.StartElementHandler = lambda name, found: add("start", name=name, attributes=found)
        parser.EndElementHandler = lambda name: add("end", name=name)
        parser.CharacterDataHandler = lambda text: add("text", text=text)
        parser.StartCdataSectionHandler = lambda: add("cdata")
        parser.EndCdataSectionHandler = lambda: add("cdata")
        parser.EntityDeclHandler = refuse
        parser.DefaultHandler = lambda text: add("other")
        try:
            parser.Parse(self._bytes, True)
        except expat.ExpatError as error:
            raise DataError(
                f"not well-formed XML at column {error.offset + 1} "
                f"({expat.ErrorString(error.code)})",
                path=self._path,
                line=error.lineno,
                remedy="Repair the file; an XML editor shows the place.",
            ) from None
        if self.events:
            self.events[-1].end = self.size


@dataclass(frozen=True)
class XmlSlice:
    """The content of an element; without the document, tags have no text."""

    document: XmlText | None
    events: Sequence[Event]


def inner(events: Sequence[Event], start: int) -> int:
    """Return the index of the end of the element that starts at this index."""
    depth = 0
    for index in range(start, len(events)):
        depth += (events[index].kind == "start") - (events[index].kind == "end")
        if depth == 0:
            return index
    return len(events) - 1


def write_xml(text: str) -> str:
    """Return a text escaped for XML."""
    return escape(text)


def plain_text(events: Sequence[Event], role: Callable[[Event], Role]) -> str:
    """Return the text of an element's content, without tags and native codes."""
    text, _ = _read(XmlSlice(None, events), role)
    return text


def content_parts(content: XmlSlice, role: Callable[[Event], Role]) -> list[str | Segment]:
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
    )
    before, behind = ("".join(tag.raw for tag in outer) for outer in (pairs[:first], pairs[last:]))
    return [before, segment, behind]


def _read(content: XmlSlice, role: Callable[[Event], Role]) -> tuple[str, list[Tag]]:
    """Return the text of an element and its tags."""
    events, document = content.events, content.document

    def raw(start: int, end: int) -> str:
        return document.raw(start, end) if document is not None else ""

    text, tags = "", []
    index = 0
    while index < len(events):
        event = events[index]
        if event.kind == "text":
            text += event.text
        elif event.kind == "other":
            tags.append(Tag(len(text), raw(event.start, event.end)))
        elif event.kind == "end":
            tags.append(Tag(len(text), raw(event.start, event.end), "close", f"</{event.name}>"))
        elif event.kind == "start":
            what, pair = role(event)
            if what == "element":
                tags.append(Tag(len(text), raw(event.start, event.end), "open", f"</{event.name}>"))
            else:
                last = inner(events, index)
                tags.append(Tag(len(text), raw(event.start, events[last].end), what, pair))
                index = last
        index += 1
    return text, tags
