"""Translation memories (TMX 1.4): missing texts of the target language are filled in."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from regard.base.errors import DataError
from regard.corpora.formats import xml_events as xml
from regard.corpora.formats.document import Document, Languages, Segment


@dataclass(frozen=True)
class Variant:
    """One language of a unit, with its segment."""

    language: str
    start: xml.XmlEvent
    content: xml.XmlSlice
    end: xml.XmlEvent


@dataclass(frozen=True)
class TmxUnit:
    """A translation unit and where it ends."""

    variants: list[Variant]
    end: xml.XmlEvent

    def of(self, language: str) -> Variant | None:
        """Return the variant of a language; "en" is also found as "en-US"."""
        for wanted in (language.lower(), language.lower().partition("-")[0]):
            for variant in self.variants:
                code = variant.language.lower()
                if code == wanted or code.partition("-")[0] == wanted:
                    return variant
        return None


def read_tmx(content: str, path: Path, languages: Languages) -> Document:
    """Return a memory with a segment for each unit without the target language."""
    document = xml.XmlText(content, path=path)
    units = list(_units(document))
    source, target = _pair(document, units, languages, path=path)
    parts: list[str | Segment] = []
    place = 0
    for unit in units:
        text, there = unit.of(source), unit.of(target)
        if text is None or (there is not None and xml.plain_text(there.content, role).strip()):
            continue
        translated = xml.content_parts(text.content, role)
        if not any(isinstance(part, Segment) for part in translated):
            continue
        if there is None:
            opening = f"<tuv xml:lang={quoteattr(target)}><seg>"
            parts += [document.raw(place, unit.end.start) + opening, *translated, "</seg></tuv>"]
            place = unit.end.start
        else:
            before = document.raw(place, there.start.start)
            parts += [before + _opened(document, there.start), *translated, f"</{there.end.name}>"]
            place = there.end.end
    return Document((*parts, document.raw(place, document.size)))


def tmx_pairs(content: str, *, path: Path, languages: Languages) -> Iterator[tuple[int, str, str]]:
    """Yield line, source and target of all units that have both languages."""
    document = xml.XmlText(content, path=path)
    units = list(_units(document))
    source, target = _pair(document, units, languages, path=path)
    for unit in units:
        first, second = unit.of(source), unit.of(target)
        if first is not None and second is not None:
            texts = (" ".join(xml.plain_text(v.content, role).split()) for v in (first, second))
            yield (first.start.line, *texts)  # type: ignore[misc]


def role(event: xml.XmlEvent) -> xml.Role:
    """Return the role of a tag inside a segment."""
    number = event.attributes.get("i", "")
    if event.local == "bpt":
        return "open", number
    if event.local == "ept":
        return "close", number
    return ("element", "") if event.local == "hi" else ("alone", "")


def _opened(document: xml.XmlText, start: xml.XmlEvent) -> str:
    """Return a start tag as written, without the slash of an empty element."""
    raw = document.raw(start.start, start.end)
    return f"{raw[:-2].rstrip()}>" if raw.endswith("/>") else raw


def _units(document: xml.XmlText) -> Iterator[TmxUnit]:
    variants: list[Variant] = []
    language = ""
    events = document.events
    skipped = 0
    for index, event in enumerate(events):
        if index < skipped:
            continue
        if event.kind == "start" and event.local == "tu":
            variants = []
        elif event.kind == "start" and event.local == "tuv":
            language = event.attributes.get("xml:lang", event.attributes.get("lang", ""))
        elif event.kind == "start" and event.local == "seg":
            content = xml.content_of(document, index)
            variants.append(Variant(language, event, content, events[event.closed]))
            skipped = event.closed + 1
        elif event.kind == "end" and event.local == "tu":
            yield TmxUnit(variants, event)


def _pair(
    document: xml.XmlText, units: list[TmxUnit], languages: Languages, *, path: Path
) -> tuple[str, str]:
    """Return the two languages: those given, or those of the memory."""
    found = list(dict.fromkeys(v.language for unit in units for v in unit.variants))
    headers = [e for e in document.events if e.kind == "start" and e.local == "header"]
    declared = headers[0].attributes.get("srclang", "") if headers else ""
    source = languages.source or ("" if declared == "*all*" else declared) or "".join(found[:1])
    target = languages.target
    if not target:
        others = [code for code in found if not _same(code, source)]
        if len(others) != 1:
            raise DataError(
                f"the target language is unclear: the memory has {', '.join(found) or 'none'}",
                path=path,
                remedy="Name it, for example --target-language de, or keep only two languages.",
            )
        target = others[0]
    return source, target


def _same(one: str, other: str) -> bool:
    return one.lower().partition("-")[0] == other.lower().partition("-")[0]
