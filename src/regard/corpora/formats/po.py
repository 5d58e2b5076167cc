"""Message catalogues (gettext PO): empty translations are filled in and marked as fuzzy."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from regard.base.errors import DataError
from regard.corpora.formats.document import Document, Languages, Segment
from regard.corpora.formats.placeholders import find_placeholders

FIELD = re.compile(r"\s*(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)\s*(\".*)")
QUOTED = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*')
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
WRITTEN = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})


@dataclass
class Field:
    """A keyword and its text, with its first and last line counted from 0."""

    keyword: str
    text: str
    first: int
    last: int


@dataclass
class Message:
    """The fields of a message by keyword, and its flags, such as fuzzy, with their first line."""

    fields: dict[str, Field] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    flag_line: int | None = None
    before: int | None = None
    """The line of the previous source text (#|), before which flags belong."""


def read_po(content: str, path: Path, languages: Languages, *, fuzzy: bool = True) -> Document:
    """Return a catalogue with a segment for each empty translation.

    With `fuzzy` their messages get that flag: a person should check them, and programs do not use
    them before.
    """
    lines = content.splitlines(keepends=True)
    parts: list[str | Segment] = []
    place = 0
    for message in _messages(lines, path):
        empty = [
            one
            for keyword, one in message.fields.items()
            if keyword.startswith("msgstr")
            and not one.text
            and _source(message, keyword).text.strip()
        ]
        if empty and fuzzy and "fuzzy" not in message.flags:
            flags = _fuzzy_line(message, lines)
            parts += ["".join(lines[place : flags.first]), flags.text]
            place = flags.last
        for one in empty:
            text = _source(message, one.keyword).text
            end = lines[one.last][len(lines[one.last].rstrip("\r\n")) :]
            parts.append("".join(lines[place : one.first]) + f'{one.keyword} "')
            parts.append(
                Segment(
                    text,
                    write=_escaped,
                    hard_breaks=True,
                    line=one.first + 1,
                    protected=tuple(find_placeholders(text)),
                )
            )
            parts.append(f'"{end}')
            place = one.last + 1
    return Document((*parts, "".join(lines[place:])))


def _fuzzy_line(message: Message, lines: list[str]) -> Field:
    """Return the line with the flag: a new one, or the first line of flags with one more."""
    first = message.flag_line
    if first is not None:
        return Field("#,", lines[first].replace("#,", "#, fuzzy,", 1), first, first + 1)
    first = min(one.first for one in message.fields.values())
    first = first if message.before is None else message.before
    end = "\r\n" if lines[first].endswith("\r\n") else "\n"
    return Field("#,", f"#, fuzzy{end}", first, first)


def po_pairs(content: str, *, path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, source and target of all translated messages; fuzzy ones are skipped."""
    for message in _messages(content.splitlines(keepends=True), path):
        if "fuzzy" in message.flags:
            continue
        for keyword, target in message.fields.items():
            if keyword.startswith("msgstr"):
                sides = [" ".join(f.text.split()) for f in (_source(message, keyword), target)]
                if all(sides):
                    yield target.first + 1, sides[0], sides[1]


def _source(message: Message, keyword: str) -> Field:
    """Return the source of a translation: the singular for the first form, else the plural."""
    plural = message.fields.get("msgid_plural")
    return message.fields["msgid"] if plural is None or keyword == "msgstr[0]" else plural


def _messages(lines: list[str], path: Path) -> Iterator[Message]:
    """Yield the messages; comments and obsolete messages are skipped."""
    message, current = Message(), None
    for number, line in enumerate(lines):
        bare = line.strip().removeprefix("\ufeff")
        if match := FIELD.fullmatch(bare):
            keyword = match[1]
            if "msgstr" in "".join(message.fields) and not keyword.startswith("msgstr"):
                yield message
                message = Message()
            if keyword.startswith("msgstr") and "msgid" not in message.fields:
                raise _mistake("msgstr without a msgid", path, number)
            if keyword in message.fields:
                raise _mistake(f"a second {keyword} in one message", path, number)
            current = Field(keyword, _unquoted(match[3], path, number), number, number)
            message.fields[keyword] = current
        elif bare.startswith('"'):
            if current is None:
                raise _mistake("text without a keyword before it", path, number)
            current.text += _unquoted(bare, path, number)
            current.last = number
        elif bare.startswith("#"):
            if "msgstr" in "".join(message.fields):
                yield message
                message = Message()
            current = None
            if bare.startswith("#,"):
                message.flags |= {flag.strip() for flag in bare[2:].split(",")}
                message.flag_line = number if message.flag_line is None else message.flag_line
            elif bare.startswith("#|") and message.before is None:
                message.before = number
        elif bare:
            raise _mistake(f"a line that begins with {bare[:20]!r}", path, number)
    if "msgstr" in "".join(message.fields):
        yield message
    elif message.fields:
        raise _mistake("msgid without a msgstr at the end", path, len(lines) - 1)


def _unquoted(quoted: str, path: Path, number: int) -> str:
    match = QUOTED.fullmatch(quoted)
    if match is None:
        raise _mistake("a text whose quotation marks do not match", path, number)
    return ESCAPE.sub(_unescaped, match[1])


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) == 3:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return ESCAPES.get(code, code)


def _escaped(text: str) -> str:
    return text.translate(WRITTEN)


def _mistake(problem: str, path: Path, number: int) -> DataError:
    return DataError(
        problem,
        path=path,
        line=number + 1,
        remedy="This is not valid PO; msgfmt -c shows what is wrong.",
    )
