"""Subtitles (SubRip): numbers and times are kept, and the number of lines of each subtitle."""

import re
from bisect import bisect_left
from functools import partial
from itertools import accumulate
from pathlib import Path

from regard.base.errors import DataError
from regard.corpora.formats.document import Document, Languages, Segment
from regard.corpora.formats.inline import Tag, paired, peeled

TIME = re.compile(r"[ \t]*\d+:\d\d:\d\d[,.]\d{1,3}[ \t]*-->[ \t]*\d+:\d\d:\d\d[,.]\d{1,3}")
MARKUP = re.compile(r"</?[a-zA-Z][^<>\n]*>|\{\\?[^{}\n]*\}")
WORD = re.compile(r"(?:<[^<>]*>|\S)+")  # a tag may hold spaces


def read_srt(content: str, path: Path, languages: Languages) -> Document:
    """Return subtitles with their texts as segments."""
    parts: list[str | Segment] = []
    text: list[str] = []
    timed, begun = False, 0
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        bare = line.strip().removeprefix("\ufeff")
        if timed and bare:
            text.append(line)
            begun = begun or number
            continue
        parts += _subtitle(text, begun)
        text, timed, begun = [], bool(TIME.match(bare)), 0
        if bare and not timed and not bare.isdigit():
            raise DataError(
                f"neither a number nor a time stands before {bare[:30]!r}",
                path=path,
                line=number,
                remedy="A subtitle is a number, a line such as 00:00:01,000 --> 00:00:02,500, "
                "its text, and an empty line.",
            )
        parts.append(line)
    return Document((*parts, *_subtitle(text, begun)))


def _subtitle(lines: list[str], number: int) -> list[str | Segment]:
    """Return the text of a subtitle with the markup before and after it."""
    if not lines:
        return []
    whole = "".join(lines)
    body = whole.rstrip("\r\n")
    text, tags, end = "", [], 0
    for match in MARKUP.finditer(body):
        text += body[end : match.start()]
        name = match[0].strip("<>/").split()[0].lower() if match[0][0] == "<" else ""
        kind = "close" if match[0].startswith("</") else "open" if name else "alone"
        tags.append(Tag(len(text), match[0], kind, name))  # type: ignore[arg-type]
        end = match.end()
    text += body[end:]
    if not text.strip():
        return [whole]
    pairs = paired(tags)
    first, last = peeled(text, pairs)
    line_end = "\r\n" if "\r\n" in body else "\n"
    arrange = partial(balanced, lines=len(lines), line_end=line_end)
    segment = Segment(
        text,
        arrange=arrange,
        tags=paired(pairs[first:last]),
        line=number,
    )
    before, behind = ("".join(tag.raw for tag in outer) for outer in (pairs[:first], pairs[last:]))
    return [before, segment, behind + whole[len(body) :]]


def balanced(text: str, *, lines: int, line_end: str = "\n") -> str:
    """Return a text in `lines` lines of about equal length."""
    words = WORD.findall(text)
    ends = [0, *accumulate(len(MARKUP.sub("", word)) + 1 for word in words)]  # with a space each
    rows, place = [], 0
    for left in range(min(lines, len(words)), 0, -1):
        end = len(words)
        if left > 1:
            wanted = ends[place] + (ends[-1] - 1 - ends[place]) / left + 1
            last = len(words) - left + 1
            end = bisect_left(ends, wanted, place + 1, last)
            if end > place + 1 and wanted - ends[end - 1] <= ends[end] - wanted:
                end -= 1
        rows.append(" ".join(words[place:end]))
        place = end
    return line_end.join(rows)
