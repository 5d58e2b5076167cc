"""Texts with light markup, as Markdown and reStructuredText: marks between words, text in lines.

A reader finds the lines of a text and the marks in it. The translation gets the marks as tags, and
as many lines as the source, broken at about the same shares of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from regard.base.errors import DataError
from regard.corpora.formats.document import Segment
from regard.corpora.formats.inline import Tag, paired, peeled
from regard.corpora.formats.placeholders import Span, find_placeholders, merged

# A noncharacter that stands for a space inside markup, where no line may end.
FIXED_SPACE = "\ufdd2"
# Words that would begin a heading, a list, a quotation, a table or a fence at the start of a line.
STARTS_BLOCK = re.compile(r"(?:[-+*>|]|#{1,6}|\d{1,9}[.)]|=+|-{2,}|\.\.|:|~{3,}.*|`{3,}.*)(?=\s|$)")


LONGEST_PARAGRAPH = 50_000


class MarkupSpan(NamedTuple):
    """Markup from `start` to `end` of a text; `raw` is what is written for it, if not itself."""

    start: int
    end: int
    kind: Literal["open", "close", "alone"] = "alone"
    name: str = ""
    raw: str | None = None


@dataclass(frozen=True)
class SourceLines:
    """The lines of a text without what stands around them, and what stands between them."""

    texts: tuple[str, ...]
    joints: tuple[str, ...]
    number: int

    @property
    def joined(self) -> str:
        """The text on one line."""
        return " ".join(self.texts)

    @property
    def raw(self) -> str:
        """The text as the file has it."""
        return self.texts[0] + "".join(
            joint + text for joint, text in zip(self.joints, self.texts[1:], strict=True)
        )

    def wrap(self, text: str) -> str:
        """Return a text in as many lines, if it has the words; each ends near its old share."""
        source = len(self.joined)
        spaces = [
            match.start()
            for match in re.finditer(" ", text)
            if match.start() and not STARTS_BLOCK.match(text, match.end())
        ]
        if STARTS_BLOCK.match(text) and not STARTS_BLOCK.match(self.texts[0]):
            return self.wrap(f"\\{text}")
        pieces, begin, seen = [], 0, 0
        for line, joint in zip(self.texts, self.joints, strict=False):
            seen += len(line) + 1
            wanted = (seen - 1) * len(text) / max(source, 1)
            at = bisect_left(spaces, max(wanted, begin + 1))
            near = [place for place in spaces[max(0, at - 1) : at + 1] if place > begin]
            if not near:
                break
            end = min(near, key=lambda place: abs(place - wanted))
            pieces.append(text[begin:end] + joint)
            begin = end + 1
        return ("".join(pieces) + text[begin:]).replace(FIXED_SPACE, " ")


def markup_segment(
    lines: SourceLines,
    marks: Sequence[MarkupSpan],
    protected: Sequence[Span],
    *,
    write: Callable[[str], str],
    arrange: Callable[[str], str] = str,
) -> Segment | None:
    """Return the lines as a segment without their marks, or None if there is nothing to translate.

    `protected` are places of the joined lines that stay as they are, besides placeholders.
    """
    joined = lines.joined
    pieces: list[str] = []
    tags: list[Tag] = []
    starts, places = [0], [0]  # of the pieces: in the joined lines, and in the text
    for mark in sorted(marks):
        if mark.start < starts[-1]:
            continue
        pieces.append(joined[starts[-1] : mark.start])
        length = places[-1] + len(pieces[-1])
        raw = joined[mark.start : mark.end] if mark.raw is None else mark.raw
        tags.append(Tag(length, raw.replace(" ", FIXED_SPACE), mark.kind, mark.name))
        starts.append(mark.end)
        places.append(length)
    text = "".join([*pieces, joined[starts[-1] :]])

    def placed(place: int) -> int:
        piece = bisect_right(starts, place) - 1
        return min(places[piece] + place - starts[piece], len(text))

    spans = merged([*((placed(s), placed(e)) for s, e in protected), *find_placeholders(text)])
    pairs = paired(tags)
    first, last = peeled(text, pairs)
    before, behind = ("".join(tag.raw for tag in outer) for outer in (pairs[:first], pairs[last:]))
    if not any(letter.isalpha() for letter in blanked(text, spans, " ")):
        return None
    return Segment(
        text,
        write=write,
        arrange=lambda written: arrange(lines.wrap(f"{before}{written}{behind}")),
        tags=paired(pairs[first:last]),
        line=lines.number,
        protected=tuple(spans),
        raw=arrange(lines.raw),
    )


def blanked(text: str, spans: Sequence[Span], letter: str = "x") -> str:
    """Return a text with letters in place of what has been read already."""
    letters = list(text)
    for start, end in spans:
        letters[start:end] = letter * (end - start)
    return "".join(letters)


def require_paragraph(text: str, *, path: Path, line: int) -> None:
    """Refuse a paragraph that no person has written; the search for marks is not made for it."""
    if len(text) > LONGEST_PARAGRAPH:
        raise DataError(
            f"a paragraph of {len(text):,} characters",
            path=path,
            line=line,
            remedy=f"At most {LONGEST_PARAGRAPH:,} are read; is this the right --format?",
        )


def escaped(text: str, *, marks: str, source: str) -> str:
    """Return a text with a backslash before each mark that its source does not have.

    What the source has in plain text means nothing there, or it would have been taken as markup.
    """
    for mark in marks:
        if mark in text and mark not in source:
            text = text.replace(mark, f"\\{mark}")
    return text


def emphasis(text: str, runs: Sequence[re.Match[str]]) -> list[MarkupSpan]:
    """Return pairs of emphasis marks, as ** or _; those without a partner are plain text."""
    found: list[MarkupSpan] = []
    opened: list[re.Match[str]] = []
    places: dict[str, list[int]] = {}  # of the open marks of each kind
    for run in runs:
        before, after = text[: run.start()][-1:], text[run.end() :][:1]
        closes, opens = bool(before.strip()), bool(after.strip())
        if run[0][0] == "_":  # never inside a word
            closes, opens = closes and not after.isalnum(), opens and not before.isalnum()
        if closes and places.get(run[0]):
            depth = places[run[0]][-1]
            start = opened[depth]
            while len(opened) > depth:  # marks that were opened inside are plain text
                places[opened.pop()[0]].pop()
            found.append(MarkupSpan(*start.span(), "open", run[0]))
            found.append(MarkupSpan(*run.span(), "close", run[0]))
        elif opens:
            places.setdefault(run[0], []).append(len(opened))
            opened.append(run)
    return found
