"""The fields of a request's body: JSON, or a form of either kind, within limits."""

import logging
import re
from typing import Any
from urllib.parse import parse_qs

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from regard.base.budgets import parse_json
from regard.serving.errors import bad_request

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
# Limits of the head of one part of a multipart form; names of fields are short.
HEADERS, HEADER_BYTES = 8, 1_024
# It would log a line for every damaged form.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
NOT_A_FORM = "The form is not valid multipart/form-data."


def body_fields(body: bytes, content_type: str, *, most: int) -> dict[str, Any]:
    """Return the fields of a body; a form may have `most` of them."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == MULTIPART:
        return _multipart(body, content_type, most)
    if kind == FORM and not body.lstrip().startswith(b"{"):  # curl -d sends JSON as a form
        return _form(body, most)
    return _json(body)


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = parse_json(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise bad_request(f"The request is not UTF-8 (byte {error.start}).") from None
    except ValueError:
        raise bad_request("The request is neither JSON nor a form.") from None
    if not isinstance(found, dict):
        raise bad_request('The request must be a JSON object, as {"q": ...}.')
    return found


def _form(body: bytes, most: int) -> dict[str, Any]:
    try:
        text = body.decode("utf-8")
        if text.count("&") >= most:
            raise _too_many(most)
        return _single(parse_qs(text, keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError:
        raise bad_request("The form is not UTF-8.") from None


def _multipart(body: bytes, content_type: str, most: int) -> dict[str, Any]:
    """Return the fields of a multipart form; its parts are texts, whatever they say they are."""
    if len(content_type) > HEADER_BYTES:
        raise bad_request(NOT_A_FORM)
    boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
    parts = _FormParts(most)
    try:
        parser = MultipartParser(
            boundary,
            parts.callbacks(),  # type: ignore[arg-type]
            max_header_count=HEADERS,
            max_header_size=HEADER_BYTES,
        )
        parser.write(body)
        parser.finalize()
    except (FormParserError, ValueError):
        raise bad_request(NOT_A_FORM) from None
    found: dict[str, list[str]] = {}
    try:
        for name, content in parts.found:
            found.setdefault(name.decode("utf-8"), []).append(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise bad_request("The form is not UTF-8.") from None
    return _single(found)


class _FormParts:
    """The parts of a multipart form, collected while it is parsed."""

    def __init__(self, most: int):
        self.found: list[tuple[bytes, bytearray]] = []
        self._most = most
        self._name = b""
        self._header = bytearray()
        self._content = bytearray()

    def callbacks(self) -> dict[str, Any]:
        """Return what the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._add_to_header,
            "on_header_value": self._add_value,
            "on_header_end": self._end_header,
            "on_part_data": self._add_content,
            "on_part_end": self._end,
        }

    def _begin(self) -> None:
        if len(self.found) >= self._most:
            raise _too_many(self._most)
        self._name, self._content = b"", bytearray()

    def _add_to_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        if b":" not in self._header:
            self._header += b":"
        self._header += data[start:end]

    def _end_header(self) -> None:
        header, self._header = bytes(self._header), bytearray()
        name, _, value = header.partition(b":")
        if re.fullmatch(rb"\s*content-disposition\s*", name, re.IGNORECASE):
            self._name = parse_options_header(value)[1].get(b"name", b"")

    def _add_content(self, data: bytes, start: int, end: int) -> None:
        self._content += data[start:end]

    def _end(self) -> None:
        if self._name:
            self.found.append((self._name, self._content))


def _too_many(most: int) -> Exception:
    return bad_request(f"The form has more than {most} fields.")


def _single(found: dict[str, list[str]]) -> dict[str, Any]:
    """Return the values of a form; a list only where a name is repeated."""
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}
