"""XLIFF 1.2 and 2.x: missing targets are filled in."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from regard.base.errors import DataError
from regard.corpora.formats import xml_events as xml
from regard.corpora.formats.document import Document, Languages, Segment

UNITS = ("trans-unit", "segment")
# Tags of both versions that hold text; tags that open or close, by the attributes that pair them.
ELEMENTS = ("g", "mrk", "pc")
OPENING = {"bpt": ("rid", "id"), "bx": ("rid", "id"), "sc": ("id",)}
CLOSING = {"ept": ("rid", "id"), "ex": ("rid", "id"), "ec": ("startRef", "id")}


@dataclass(frozen=True)
class XliffUnit:
    """A unit of translation: its source, its target, and the place of a missing target."""

    line: int
    source_name: str
    source: xml.XmlSlice
    target: xml.XmlSlice | None
    target_start: xml.XmlEvent | None
    target_end: xml.XmlEvent | None
    place: int
    wanted: bool


def read_xliff(content: str, path: Path, languages: Languages) -> Document:
    """Return a document with a segment for each unit without a target."""
    document = _with_language(xml.XmlText(content, path=path), languages, path)
    parts: list[str | Segment] = []
    place = 0
    root = next(event for event in document.events if event.kind == "start")
    if root.local != "xliff":
        raise DataError(
            f"the file begins with <{root.name}>, not <xliff>",
            path=path,
            line=root.line,
            remedy="Name its format with --format.",
        )
    if root.attributes.get("version", "").startswith("2") and "trgLang" not in root.attributes:
        if not languages.target:
            raise DataError(
                "the file does not name its target language (trgLang)",
                path=path,
                line=root.line,
                remedy="Name it, for example --target-language de.",
            )
        parts.append(document.raw(0, root.end).removesuffix(">"))
        parts.append(f" trgLang={quoteattr(languages.target)}>")
        place = root.end
    for unit in _units(document):
        if not unit.wanted or (unit.target and xml.plain_text(unit.target, role).strip()):
            continue
        translated = xml.content_parts(unit.source, role)
        if not any(isinstance(part, Segment) for part in translated):
            continue
        name = f"{unit.source_name.removesuffix('source')}target"
        if unit.target_start is None or unit.target_end is None:
            parts += [document.raw(place, unit.place) + f"<{name}>", *translated, f"</{name}>"]
            place = unit.place
        else:
            raw = document.raw(unit.target_start.start, unit.target_start.end)
            opened = f"{raw[:-2].rstrip()}>" if raw.endswith("/>") else raw
            before = document.raw(place, unit.target_start.start)
            parts += [before + opened, *translated, f"</{name}>"]
            place = unit.target_end.end
    return Document((*parts, document.raw(place, document.size)))


def _with_language(document: xml.XmlText, languages: Languages, path: Path) -> xml.XmlText:
    """Return a document of version 1.2 whose files name the target language, if it is known."""
    unnamed = [
        event
        for event in document.events
        if event.kind == "start"
        and event.local == "file"
        and "source-language" in event.attributes
        and "target-language" not in event.attributes
    ]
    if not unnamed or not languages.target:
        return document
    parts, place = [], 0
    for event in unnamed:
        end = event.start + len(f"<{event.name}".encode())
        parts.append(document.raw(place, end))
        parts.append(f" target-language={quoteattr(languages.target)}")
        place = end
    return xml.XmlText("".join((*parts, document.raw(place, document.size))), path=path)


def xliff_pairs(content: str, *, path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, source and target of all units that have both."""
    for unit in _units(xml.XmlText(content, path=path)):
        if unit.target is None:
            continue
        sides = [" ".join(xml.plain_text(e, role).split()) for e in (unit.source, unit.target)]
        if all(sides):
            yield unit.line, sides[0], sides[1]


def role(event: xml.XmlEvent) -> xml.Role:
    """Return the role of a tag inside a source."""
    name, attributes = event.local, event.attributes
    if name in ELEMENTS:
        return "element", ""
    for what, table in (("open", OPENING), ("close", CLOSING)):
        if name in table:
            pair = next((attributes[key] for key in table[name] if key in attributes), "")
            return what, pair  # type: ignore[return-value]
    return "alone", ""


def _units(document: xml.XmlText) -> Iterator[XliffUnit]:
    wanted = [True]
    skipped = 0
    for index, event in enumerate(document.events):
        if event.kind == "end":
            wanted.pop()
        if event.kind != "start":
            continue
        wanted.append(wanted[-1] and event.attributes.get("translate") != "no")
        if event.local in UNITS and index >= skipped:  # there is no unit inside another
            skipped = event.closed
            unit = _unit(document, index, wanted[-1])
            if unit is not None:
                yield unit


def _unit(document: xml.XmlText, start: int, wanted: bool) -> XliffUnit | None:
    """Return the unit that starts here; of its children's children all are ignored."""
    events = document.events
    found: dict[str, tuple[int, int]] = {}
    index = start + 1
    while index < events[start].closed:
        if events[index].kind == "start":
            found.setdefault(events[index].local, (index, events[index].closed))
            index = events[index].closed
        index += 1
    if "source" not in found:
        return None
    start, end = found["source"]
    after = found.get("seg-source", (start, end))[1]
    target = found.get("target")
    return XliffUnit(
        line=events[start].line,
        source_name=events[start].name,
        source=xml.content_of(document, start),
        target=xml.content_of(document, target[0]) if target else None,
        target_start=events[target[0]] if target else None,
        target_end=events[target[1]] if target else None,
        place=events[after].end,
        wanted=wanted,
    )
