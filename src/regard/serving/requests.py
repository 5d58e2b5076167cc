"""Reading requests: their bodies within limits, and their texts split into sentences."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from regard.corpora.formats.document import Document, Languages, Segment
from regard.corpora.formats.html import read_html
from regard.documents.segments import LinkedText, SplitSegments, Splitting
from regard.serving.errors import ApiError, bad_request
from regard.serving.forms import body_fields
from regard.serving.languages import Pair
from regard.serving.limits import ServerSettings
from regard.serving.state import Server

AnyModel = TypeVar("AnyModel", bound=BaseModel)

# Larger bodies are parsed in a thread, so that they do not hold up other requests.
LARGE_BODY = 16_384
# Fields of a form other than its texts.
OTHER_FIELDS = 20


async def read_request(request: Request, kind: type[AnyModel], server: Server) -> AnyModel:
    """Return the fields of an admitted request, or raise an error that names the first problem.

    A request is admitted before its body is read, unless its API key is in the body. Text fields
    hold neither NUL characters nor lone surrogates.
    """
    admitted = server.admit_by_head(request)
    body = await _read(request, server.settings)
    content_type = request.headers.get("content-type", "")
    most = server.settings.max_items + OTHER_FIELDS
    if len(body) > LARGE_BODY:
        fields = await asyncio.to_thread(body_fields, body, content_type, most=most)
    else:
        fields = body_fields(body, content_type, most=most)
    if not admitted:
        server.admit(request, str(fields.get("api_key", "")))
    try:
        found = kind.model_validate(fields)
    except ValidationError as error:
        raise bad_request(_problem(error)) from None
    for name in kind.model_fields:
        value = getattr(found, name)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                _require_text(text, name=name)
    return found


def _require_text(text: str, *, name: str) -> None:
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
