"""HTML: each block of text is one segment, and the tags inside it are restored."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape

from regard.base.budgets import Meter
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
BREAKS = frozenset(["br", "hr"])  # words on both sides are apart
TEXT_OR_REFERENCE = re.compile(r"&(?:#[xX]?[0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);?|[^&]+|&")
LANGUAGE = re.compile(
    r"""(?<![\w-])((?:xml:)?lang\s*=\s*)("[^"]*"|'[^']*'|[^\s>"']+)""", re.IGNORECASE
)


class HtmlEvent(NamedTuple):
    """A piece of the file and where it begins."""

    kind: Literal["start", "end", "text", "reference", "other"]
    place: int
    name: str = ""
    kept: bool = False


def read_html(content: str, path: Path, languages: Languages) -> Document:
    """Return a page with its blocks of text as segments."""
    events = _Places(content, Meter(path)).read()
    if not events:
        return Document((content,))
    places = [event.place for event in events[1:]] + [len(content)]
    raws = [content[e.place : end] for e, end in zip(events, places, strict=True)]
    ends = _ends(events)
    xhtml = content.lstrip("\ufeff \t\r\n").startswith("<?xml") or path.suffix == ".xhtml"
    reading = _Reading(languages, xhtml=xhtml)
    index = 0
    while index < len(events):
        index = reading.take(events, raws, ends, index)
    reading.end_block()
    return Document(tuple(reading.parts))


class _Places(HTMLParser):
    """A parser that collects events with their places; it accepts any page."""

    def __init__(self, content: str, meter: Meter):
        super().__init__(convert_charrefs=False)
        self._content = content
        self._meter = meter
        self._lines = [0, *(m.end() for m in re.finditer("\n", content))]
        self._events: list[HtmlEvent] = []
        meter.take(bytes=len(content))

    def read(self) -> list[HtmlEvent]:
        """Return all events.

        Behind the last ">" no tag can end. There the parser would look for an end again and again,
        in a time that grows with the square of the length.
        """
        end = self._content.rfind(">") + 1
        self.feed(self._content[:end])
        self.close()
        for match in TEXT_OR_REFERENCE.finditer(self._content, end):
            kind: Literal["text", "reference"] = (
                "reference" if len(match[0]) > 1 and match[0][0] == "&" else "text"
            )
            self._events.append(HtmlEvent(kind, match.start()))
        return self._events

    def parse_html_declaration(self, i: int) -> int:
        """Return where a declaration ends; one that Python's parser gives up on is a comment."""
        place = self.lineno, self.offset
        try:
            return super().parse_html_declaration(i)
        except AssertionError:
            self.lineno, self.offset = place
            return self.parse_bogus_comment(i)

    def _add(
        self,
        kind: Literal["start", "end", "text", "reference", "other"],
        name: str = "",
        kept: bool = False,
    ) -> None:
        line, column = self.getpos()
        self._meter.take(items=1)
        self._events.append(HtmlEvent(kind, self._lines[line - 1] + column, name, kept))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = ("translate", "no") in attrs or any(
            name == "class" and "notranslate" in (value or "").split() for name, value in attrs
        )
        self._add("start", tag, kept)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        inside = tag in INLINE or (tag in EMPTY and tag not in BREAKS)
        self._add("other" if inside else "start", tag)

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

    def __init__(self, languages: Languages, *, xhtml: bool = False):
        self.parts: list[str | Segment] = []
        self._xhtml = xhtml
        self._languages = languages
        self._texts: list[str] = []
        self._length = 0
        self._raws: list[str] = []
        self._tags: list[Tag] = []
        self._line = 1
        self._block_line = 0

    def take(self, events: list[HtmlEvent], raws: list[str], ends: list[int], index: int) -> int:
        """Read the event at this index; return the index of the next event."""
        event, raw = events[index], raws[index]
        following = index + 1
        if event.kind in ("text", "reference"):
            text = raw if event.kind == "text" else unescape(raw)
            if not self._block_line and text.strip():
                self._block_line = self._line
            self._raws.append(raw)
            self._texts.append(text)
            self._length += len(text)
        elif event.kind == "start" and (event.kept or event.name in KEPT | CODE):
            following = ends[index]
            raw = "".join(raws[index:following])
            self._markup(raw, block=event.name not in INLINE | CODE)
        elif event.name in INLINE:
            kind: Literal["open", "close", "alone"] = "alone"
            if event.name not in EMPTY and event.kind != "other":
                kind = "open" if event.kind == "start" else "close"
            written = self._in_language(event, raw)
            self._tags.append(Tag(self._length, written, kind, event.name))
            self._raws.append(written)
        else:
            self._markup(self._in_language(event, raw), block=event.kind != "other")
        self._line += raw.count("\n")
        return following

    def end_block(self) -> None:
        """Add the current block as a segment, or unchanged if it has no text."""
        text, tags, raw = "".join(self._texts), paired(self._tags), "".join(self._raws)
        line = self._block_line or self._line
        self._texts, self._length, self._tags, self._raws = [], 0, [], []
        self._block_line = 0
        if not any(letter.isalnum() for letter in text):
            self.parts.append(raw)
            return
        first, last = peeled(text, tags)
        before, behind = (
            "".join(tag.raw for tag in outer) for outer in (tags[:first], tags[last:])
        )
        segment = Segment(
            text,
            write=_written_xhtml if self._xhtml else _written,
            tags=paired(tags[first:last]),
            line=line,
            raw=raw,
            arrange=lambda written: f"{before}{written}{behind}",
        )
        self.parts.append(segment)

    def _markup(self, raw: str, *, block: bool) -> None:
        if block:
            self.end_block()
            self.parts.append(raw)
        else:
            self._tags.append(Tag(self._length, raw))
            self._raws.append(raw)

    def _in_language(self, event: HtmlEvent, raw: str) -> str:
        """Return a start tag whose language, if that was the source's, is now the target's.

        The page itself is in the target language, whatever it said before.
        """
        target, root = self._languages.target, event.name == "html"
        if event.kind != "start" or not target or (not root and "lang" not in raw.lower()):
            return raw

        def changed(match: re.Match[str]) -> str:
            code = match[2].strip("\"'")
            source = self._languages.source
            ours = bool(source) and _base(code) == _base(source)
            return f'{match[1]}"{target}"' if root or ours else match[0]

        found, count = LANGUAGE.subn(changed, raw)
        if root and not count:
            return f'{raw[:5]} lang="{target}"{raw[5:]}'
        return found


def _ends(events: list[HtmlEvent]) -> list[int]:
    """Return for each start tag the index after its end tag, or after itself if it has none."""
    ends = list(range(1, len(events) + 1))
    opened: dict[str, list[int]] = {}
    for index, event in enumerate(events):
        if event.kind == "start" and event.name not in EMPTY:
            opened.setdefault(event.name, []).append(index)
        elif event.kind == "end" and opened.get(event.name):
            ends[opened[event.name].pop()] = index + 1
    return ends


def _base(code: str) -> str:
    """Return a language without its region or script: "en" of "en-US"."""
    return re.split("[-_]", code.lower())[0]


def _written(text: str) -> str:
    return escape(text).replace("\u00a0", "&nbsp;")


def _written_xhtml(text: str) -> str:
    """Return a text for XHTML, which knows no name for a space that does not break."""
    return escape(text).replace("\u00a0", "&#160;")
