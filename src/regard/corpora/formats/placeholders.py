"""Placeholders in a text (%s, {name}, $var, <b>, &amp;, URLs), which a program needs unchanged.

A model may copy them by itself. Where it does not, the text is translated without them, and each is
put back next to the words it stood next to: exactly once, whatever the model makes of the rest.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from regard.corpora.formats.document import Segment
from regard.corpora.formats.inline import Tag, paired

Span = tuple[int, int]

PATTERN = re.compile(
    r"""
      (?:https?|ftp)://[^\s<>"]*[^\s<>".,;:!?)\]}']      # URLs, without a full stop at the end
    | (?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}  # addresses
    | %%
    | %(?:\([\w. -]{1,80}\)|\d{1,3}\$)?[-+#0]{0,4}(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?
      (?:hh|h|ll|l|L|q|j|z|t)?[diouxXeEfFgGaAcrsSpn@](?![A-Za-z0-9_])  # %s, %(name)s, %1$s, %.2f
    | %\w{2,60}%                                         # %name%
    | \$\{[\w.:-]{1,80}\} | \$[A-Za-z_]\w{0,80}          # ${name}, $name
    | </?[A-Za-z][^<>]{0,400}> | </?\d+/?>               # <b>, <a href="...">, </b>, <0>
    | &(?:[A-Za-z]\w{1,30}|\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6});
    | __\w{1,80}__
    """,
    re.VERBOSE,
)
# What may stand between braces: a field of str.format, or an ICU argument with its own texts.
FIELD = re.compile(r"[\w.\[\]]*(?:![rsa])?(?::[^{}\n]{0,40}(?:\{\w*\}[^{}\n]{0,40}){0,3})?")
ICU = re.compile(
    r"\s*\w+\s*,\s*(?:plural|select|selectordinal|number|date|time|spellout|ordinal)\b"
)
LONGEST_BRACES = 4_000
# Noncharacters of Unicode: they mark where a space belongs, and occur in no text.
SPACE_BEFORE, SPACE_BEHIND = "\ufdd0", "\ufdd1"
BEFORE = re.compile(rf"(^|[(\[{{«„“‘\u00bf\u00a1])?[ \t]*{SPACE_BEFORE}")
BEHIND = re.compile(rf"{SPACE_BEHIND}[ \t]*($|[.,;:!?)\]}}»”’…](?=\W|$))?")


def find_placeholders(text: str) -> list[Span]:
    """Return the places of all placeholders in a text, from left to right."""
    found = [*_braces(text), *(match.span() for match in PATTERN.finditer(text))]
    return merged(found)


def merged(spans: Sequence[Span]) -> list[Span]:
    """Return spans in order; those that overlap become one."""
    kept: list[Span] = []
    for start, end in sorted(spans):
        if kept and start < kept[-1][1]:
            kept[-1] = (kept[-1][0], max(kept[-1][1], end))
        else:
            kept.append((start, end))
    return kept


def _braces(text: str) -> Iterator[Span]:
    """Yield the places of {name}, {0:>5}, {{name}} and {count, plural, one {...} other {...}}."""
    closings = closing_places(text, "{", "}")
    start = text.find("{")
    while start >= 0:
        end = closings.get(start, 0)
        end = end if end - start <= LONGEST_BRACES else 0
        inside = text[start + 1 : end - 1]
        if end and inside.startswith("{") and inside.endswith("}"):
            inside = inside[1:-1].strip()
        if end and (FIELD.fullmatch(inside) or ICU.match(inside)):
            yield start, end
        start = text.find("{", end if end else start + 1)


def closing_places(text: str, opening: str, closing: str) -> dict[int, int]:
    """Return for the place of each opening mark the place behind the one that closes it."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for match in re.finditer(f"[{re.escape(opening + closing)}]", text):
        if match[0] == opening:
            opened.append(match.start())
        elif opened:
            found[opened.pop()] = match.end()
    return found


def copied(segment: Segment, target: str) -> bool:
    """Return whether a translation holds every placeholder as often as its source, and no other."""
    source = segment.text
    parts = {source[start:end] for start, end in segment.protected}
    if any(source.count(part) != target.count(part) for part in parts):
        return False
    found = (sorted(text[s:e] for s, e in find_placeholders(text)) for text in (source, target))
    return next(found) == next(found)


def translatable(segment: Segment) -> bool:
    """Return whether there are words besides the placeholders."""
    text = segment.text
    for start, end in reversed(segment.protected):
        text = text[:start] + " " + text[end:]
    return any(letter.isalpha() for letter in text)


def without_placeholders(segment: Segment) -> Segment:
    """Return a segment whose placeholders are tags, so that each is put back exactly once.

    A word with a placeholder in it is taken out as a whole, as "(%s)." or "file_%d.txt".
    """
    text, spans = segment.text, _words(segment.text, segment.protected)
    pieces: list[str] = []
    tags: list[Tag] = []
    waiting = [replace(tag, partner=None) for tag in segment.tags]
    length = cursor = 0

    def add(end: int) -> None:
        """Add the text up to `end`, with the tags in it."""
        nonlocal length, cursor
        while waiting and waiting[0].position <= end:
            place = max(0, waiting[0].position - cursor)
            tags.append(replace(waiting.pop(0), position=length + place))
        pieces.append(text[cursor:end])
        length += end - cursor
        cursor = end

    for start, end in spans:
        add(start)
        raw = segment.write(text[start:end])
        if text[end : end + 1] in ("", " ") and text[:start][-1:] in ("", " ", "\n"):
            raw = f"{SPACE_BEFORE}{raw}{SPACE_BEHIND}"
        tags.append(Tag(length, raw))
        cursor = end + (text[end : end + 1] == " ")
        while waiting and waiting[0].position < end:  # a tag inside goes before it
            tags.insert(-1, replace(waiting.pop(0), position=length))
    add(len(text))
    arrange = segment.arrange
    return replace(
        segment,
        text="".join(pieces),
        tags=paired(tags),
        protected=(),
        raw=None,
        arrange=lambda written: arrange(spaced(written)),
    )


def spaced(text: str) -> str:
    """Return a text with one space where a placeholder wants one, none at its ends."""
    text = BEHIND.sub(lambda m: m[1] if m[1] else "" if m[1] == "" else " ", text)
    return BEFORE.sub(lambda m: m[1] if m[1] is not None else " ", text)


def _words(text: str, spans: Sequence[Span]) -> list[Span]:
    """Return spans that cover whole words, except in scripts that have no spaces."""
    wide = []
    for start, end in spans:
        while start > 0 and not text[start - 1].isspace() and ord(text[start - 1]) < 0x2E80:
            start -= 1
        while end < len(text) and not text[end].isspace() and ord(text[end]) < 0x2E80:
            end += 1
        wide.append((start, end))
    return merged(wide)
