"""JSON lines: one field of each object is translated, the rest of the line is not changed."""

import json
from pathlib import Path
from typing import Any

from regard.base.budgets import parse_json
from regard.base.errors import DataError
from regard.corpora.formats.document import Document, Segment
from regard.settings.recipe import suggestion

SPACE = " \t\r\n"
DECODER = json.JSONDecoder()


class FieldReader:
    """A reader of JSONL lines; `field` may name a nested value, such as "answer.text"."""

    def __init__(self, field: str, *, path: Path):
        self._field = field
        self._path = path

    def __call__(self, line: str, number: int) -> Document:
        """Return a line with the value of the field as the segment; null is not translated."""
        if not line.strip():
            return Document((line,))
        start, end = 0, len(line)
        value: Any = read_object(line, path=self._path, line=number)
        for key in self._field.split("."):
            spans = _members(line, start) if isinstance(value, dict) else {}
            if key not in spans:
                raise DataError(
                    f"there is no field {self._field!r}",
                    path=self._path,
                    line=number,
                    remedy=suggestion(key, spans) if spans else "Name another one with --field.",
                )
            start, end, value = spans[key]
        if value is None:
            return Document((line,))
        if not isinstance(value, str):
            raise DataError(
                f"the field {self._field!r} is not text: {line[start:end][:40]}",
                path=self._path,
                line=number,
                remedy="Name a field with text.",
            )
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise DataError(
                f"the field {self._field!r} holds half a character (a lone surrogate)",
                path=self._path,
                line=number,
                remedy="Repair its \\u escapes.",
            )
        escaped = line.isascii() and "\\u" in line
        segment = Segment(
            value, write=_escaped if escaped else _plain, hard_breaks=True, line=number
        )
        return Document((line[:start], segment, line[end:]))


def read_object(text: str, *, path: Path, line: int) -> dict[str, Any]:
    """Return the JSON object of a line."""
    try:
        value = parse_json(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"not valid JSON at character {error.colno} ({error.msg})",
            path=path,
            line=line,
            remedy="Each line should hold one JSON object.",
        ) from None
    except ValueError as error:
        raise DataError(
            f"not valid JSON ({error})",
            path=path,
            line=line,
            remedy="Each line should hold one JSON object.",
        ) from None
    if not isinstance(value, dict):
        raise DataError(
            "the line is JSON, but not an object",
            path=path,
            line=line,
            remedy='Each line should hold one JSON object, such as {"text": "..."}.',
        )
    return value


def _members(text: str, start: int) -> dict[str, tuple[int, int, Any]]:
    """Return start, end and value of each member of a valid object."""
    found = {}
    position = _past_space(text, _past_space(text, start) + 1)
    while text[position] != "}":
        key, position = DECODER.raw_decode(text, position)
        value_start = _past_space(text, _past_space(text, position) + 1)
        value, value_end = DECODER.raw_decode(text, value_start)
        found[key] = (value_start, value_end, value)
        position = _past_space(text, value_end)
        if text[position] == ",":
            position = _past_space(text, position + 1)
    return found


def _past_space(text: str, position: int) -> int:
    while text[position] in SPACE:
        position += 1
    return position


def _plain(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _escaped(text: str) -> str:
    return json.dumps(text)
