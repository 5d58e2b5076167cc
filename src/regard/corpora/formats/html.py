"""HTML: each block of text is one segment, and the tags inside it are restored."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape

from regard.corpora.formats.document import Document, Languages, Segment
from regard.corpora.formats.inline import Tag, paired, peeled

INLINE = frozenset(
    ["a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "del", "dfn", "em", "font", "i",
     "img", "ins", "label", "mark", "q", "s", "small", "span", "strike", "strong", "sub", "sup",
     "time", "tt", "u", "wbr"]
)  # fmt: skip
# Elements that are not translated: CODE may be inside a text, KEPT separates texts.
CODE = frozenset(["code", "kbd", "samp", "var"])
KEPT = frozenset(["script", "style", "pre", "textarea", "svg", "math", "template", "noscript"])
EMPTY = frozenset(["img", "wbr", "br", "hr", "input", "meta", "link", "area", "base", "col",
                   "embed", "source", "track"])  # fmt: skip
LANGUAGE = re.compile(r"(\blang\s*=\s*)(\"[^\"]*\"|'[^']*'|[^\s>]+)", re.IGNORECASE)


class Event(NamedTuple):
    """A piece of the file and where it begins."""

    kind: Literal["start", "end", "text", "reference", "other"]
    place: int
    name: str = ""
    kept: bool = False


def read_html(content: str, path: Path, languages: Languages) -> Document:
    """Return a page with its blocks of text as segments."""
    parser = _Places(content)
    parser.feed(content)
    parser.close()
    if not parser.events:
        return Document((content,))
    places = [event.place for event in parser.events[1:]] + [len(content)]
    raws = [content[e.place : end] for e, end in zip(parser.events, places, strict=True)]
    reading = _Reading(languages)
    index = 0
    while index < len(parser.events):
        index = reading.take(parser.events, raws, index)
    reading.end_block()
    return Document(tuple(reading.parts))


class _Places(HTMLParser):
    """A parser that collects events with their places; it accepts any page."""

    def __init__(self, content: str):
        super().__init__(convert_charrefs=False)
        self._lines = [0, *(m.end() for m in re.finditer("\n", content))]
        self.events: list[Event] = []

    def _add(
        self,
        kind: Literal["start", "end", "text", "reference", "other"],
        name: str = "",
        kept: bool = False,
    ) -> None:
        line, column = self.getpos()
        self.events.append(Event(kind, self._lines[line - 1] + column, name, kept))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = ("translate", "no") in attrs or any(
            name == "class" and "notranslate" in (value or "").split() for name, value in attrs
        )
        self._add("start", tag, kept)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add("other" if tag in INLINE or tag in EMPTY else "start", tag)

    def handle_endtag(self, tag: str) -> None:
        self._add("end", tag)

    def handle_data(self, data: str) -> None:
        self._add("text")

    def handle_entityref(self, name: str) -> None:
        self._add("reference")

    def handle_charref(self, name: str) -> None:
        self._add("reference")

    def handle_comment(self, data: str) -> None:
        self._add("other")

    def handle_decl(self, decl: str) -> None:
        self._add("other")

    def handle_pi(self, data: str) -> None:
        self._add("other")

    def unknown_decl(self, data: str) -> None:
        self._add("other")


class _Reading:
    """The text and tags of the current block, and the parts before it."""

    def __init__(self, languages: Languages):
        self.parts: list[str | Segment] = []
        self._languages = languages
        self._text = ""
        self._raw = ""
        self._tags: list[Tag] = []
        self._line = 1
        self._block_line = 1

    def take(self, events: list[Event], raws: list[str], index: int) -> int:
        """Read the event at this index; return the index of the next event."""
        event, raw = events[index], raws[index]
        following = index + 1
        if event.kind in ("text", "reference"):
            if not self._text.strip():
                self._block_line = self._line
            self._raw += raw
            self._text += raw if event.kind == "text" else unescape(raw)
        elif event.kind == "start" and (event.kept or event.name in KEPT | CODE):
            following = _end_of(events, index)
            raw = "".join(raws[index:following])
            self._markup(raw, block=event.name not in INLINE | CODE)
        elif event.name in INLINE:
            kind: Literal["open", "close", "alone"] = "alone"
            if event.name not in EMPTY and event.kind != "other":
                kind = "open" if event.kind == "start" else "close"
            self._tags.append(Tag(len(self._text), raw, kind, event.name))
            self._raw += raw
        else:
            self._markup(self._in_language(event, raw), block=event.kind != "other")
        self._line += raw.count("\n")
        return following

    def end_block(self) -> None:
        """Add the current block as a segment, or unchanged if it has no text."""
        text, tags, raw = self._text, paired(self._tags), self._raw
        self._text, self._tags, self._raw = "", [], ""
        if not any(letter.isalnum() for letter in text):
            self.parts.append(raw)
            return
        first, last = peeled(text, tags)
        before, behind = (
            "".join(tag.raw for tag in outer) for outer in (tags[:first], tags[last:])
        )
        segment = Segment(
            text, write=_written, tags=paired(tags[first:last]), line=self._block_line
        )
        self.parts += [before, segment, behind]

    def _markup(self, raw: str, *, block: bool) -> None:
        if block:
            self.end_block()
            self.parts.append(raw)
        else:
            self._tags.append(Tag(len(self._text), raw))
            self._raw += raw

    def _in_language(self, event: Event, raw: str) -> str:
        """Return the tag with the target language if it is <html lang=...>."""
        if event.kind != "start" or event.name != "html" or not self._languages.target:
            return raw
        return LANGUAGE.sub(rf'\g<1>"{self._languages.target}"', raw, count=1)


def _end_of(events: list[Event], start: int) -> int:
    """Return the index after the end tag of an element, or after its start tag if it has none."""
    name, depth = events[start].name, 0
    if name in EMPTY:
        return start + 1
    for index in range(start, len(events)):
        if events[index].name == name:
            depth += (events[index].kind == "start") - (events[index].kind == "end")
            if depth == 0:
                return index + 1
    return start + 1


def _written(text: str) -> str:
    return escape(text).replace("\u00a0", "&nbsp;")
