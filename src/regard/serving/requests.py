"""Reading requests: their bodies within limits, and their texts split into sentences."""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qs

from fastapi import Request
from pydantic import BaseModel, ValidationError

from regard.corpora.formats.document import Document, Languages, Segment
from regard.corpora.formats.html import read_html
from regard.documents.segments import LinkedText, SplitSegments, Splitting
from regard.serving.errors import ApiError, bad_request
from regard.serving.languages import Pair
from regard.serving.limits import ServerSettings

AnyModel = TypeVar("AnyModel", bound=BaseModel)

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


async def read_request(
    request: Request, kind: type[AnyModel], settings: ServerSettings
) -> AnyModel:
    """Return the validated fields of a request, or raise an error that names the first problem."""
    body = await _read(request, settings)
    fields = _fields(body, request.headers.get("content-type", ""))
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise bad_request(_problem(error)) from None


def require_text(text: str, *, name: str = "q") -> None:
    """Refuse NUL characters and lone surrogates, which are not valid text."""
    if "\0" in text:
        raise bad_request(f"{name} holds a NUL character, which no text has.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise bad_request(f"{name} holds half a surrogate pair, which is no character.") from None


async def _read(request: Request, settings: ServerSettings) -> bytes:
    most = settings.body_bytes
    too_large = ApiError(413, f"The request is larger than {most} bytes.")
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced) > most:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise too_large
    except TimeoutError:
        raise ApiError(
            408, f"The request did not arrive within {settings.body_seconds:g} seconds."
        ) from None
    return bytes(body)


def _fields(body: bytes, content_type: str) -> dict[str, Any]:
    kind = content_type.partition(";")[0].strip().lower()
    if kind == MULTIPART:
        return _multipart(body, content_type)
    if kind == FORM and not body.lstrip().startswith(b"{"):  # curl -d sends JSON as a form
        return _form(body)
    return _json(body)


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise bad_request(f"The request is not UTF-8 (byte {error.start}).") from None
    except (ValueError, RecursionError):
        raise bad_request("The request is neither JSON nor a form.") from None
    if not isinstance(found, dict):
        raise bad_request('The request must be a JSON object, as {"q": ...}.')
    return found


def _form(body: bytes) -> dict[str, Any]:
    try:
        found = parse_qs(body.decode("utf-8"), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise bad_request("The form is not UTF-8.") from None
    return _single(found)


def _multipart(body: bytes, content_type: str) -> dict[str, Any]:
    """Return the fields of a multipart form, parsed as the MIME message that it is."""
    head = b"Content-Type: " + content_type.encode("latin-1", "replace") + b"\r\n\r\n"
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    found: dict[str, list[str]] = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            try:
                found.setdefault(name, []).append(content.decode("utf-8"))
            except UnicodeDecodeError:
                raise bad_request("The form is not UTF-8.") from None
    return _single(found)


def _single(found: dict[str, list[str]]) -> dict[str, Any]:
    """Return the values of a form; a list only where a name is repeated."""
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _problem(error: ValidationError) -> str:
    """Return the first problem as a message that never repeats the text of the request."""
    first = error.errors(include_url=False, include_input=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "the request"
    if first["type"] == "missing":
        return f"Invalid request: missing {name} parameter"
    return f"Invalid request: {name}: {first['msg']}"


# Line breaks that the sentence splitter treats as spaces.
OTHER_BREAK = re.compile("(\r(?!\n)|[\v\f\x85\u2028\u2029])")

TextFormat = Literal["text", "html"]
# The time for restoring tags is quadratic in their number.
MOST_TAGS = 200


@dataclass(frozen=True)
class PreparedText:
    """A text split into sentences, ready to be filled with their translations."""

    document: Document
    split: SplitSegments

    @property
    def sentences(self) -> list[str]:
        """The sentences to translate."""
        return self.split.sentences

    @property
    def tagged(self) -> bool:
        """Whether the translations have to carry tags."""
        return any(segment.tags for segment in self.split.segments)

    def filled(self, translations: Sequence[LinkedText]) -> str:
        """Return the text with its sentences replaced by these translations."""
        return self.document.filled(self.split.written(translations))


def prepare(text: str, *, kind: TextFormat, pair: Pair) -> PreparedText:
    """Split a text into sentences, also at line breaks; HTML is split block by block."""
    if kind == "html":
        document = read_html(text, Path("q"), Languages(pair.source, pair.target))
        tags = max((len(segment.tags) for segment in document.segments), default=0)
        if tags > MOST_TAGS:
            raise bad_request(f"A paragraph has {tags} tags inside it, more than {MOST_TAGS}.")
    else:
        lines = enumerate(OTHER_BREAK.split(text))
        document = Document(
            tuple(part if odd % 2 else Segment(part, hard_breaks=True) for odd, part in lines)
        )
    splitting = Splitting(beyond=0, language=pair.source)
    return PreparedText(document, SplitSegments.of(document.segments, splitting))
