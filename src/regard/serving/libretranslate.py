"""LibreTranslate's routes, so that its clients work here as they are.

Its statuses are kept: 400 for what cannot be served, 403 for a key that is missing or wrong, 429
for too much at once. What it does not know are 408, 413 and, where time is up, 503.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from regard.documents.segments import linked
from regard.serving.api import answered
from regard.serving.batcher import Manner
from regard.serving.errors import bad_request
from regard.serving.languages import Guess, Pair, language_name
from regard.serving.requests import FORM, Format, Prepared, prepare, read_request, require_text
from regard.serving.state import Server, server_of
from regard.serving.worker import ModelWorker
from regard.tasks.translation.results import Translation

router = APIRouter()

AUTO = "auto"
# Longer texts, and pages, are split in a thread: others should not have to wait for that.
LONG_TEXT = 5_000


class TranslateRequest(BaseModel):
    """Texts to translate."""

    q: str | list[str] = Field(description="a text, or a list of them")
    source: str = Field(description='code of a language, or "auto"')
    target: str = Field(description="code of a language")
    format: Format = Field("text", description="html keeps tags")
    alternatives: int = Field(0, ge=0, description="further translations of each text")
    api_key: str = Field("", description="where the server wants one")


class DetectRequest(BaseModel):
    """A text in some language."""

    q: str = Field(description="a text")
    api_key: str = Field("", description="where the server wants one")


def _body(model: type[BaseModel]) -> dict[str, Any]:
    schema = {"schema": model.model_json_schema()}
    content = {"application/json": schema, FORM: schema}
    return {"requestBody": {"required": True, "content": content}}


@router.post("/translate", summary="Translate texts", openapi_extra=_body(TranslateRequest))
async def translate(request: Request) -> Response:
    """Translate a text or a list of texts; paragraphs, line breaks and tags are kept."""
    server = server_of(request)
    asked = await read_request(request, TranslateRequest, server.settings)
    server.admit(request, asked.api_key)
    texts = asked.q if isinstance(asked.q, list) else [asked.q]
    _require_served(texts, asked.alternatives, server)
    guess = server.detector.best("\n".join(texts)) if asked.source == AUTO else None
    pair = Pair(guess.language if guess else asked.source, asked.target)
    if pair.source == pair.target:  # as LibreTranslate does: there is nothing to translate
        found = [[text] * (1 + asked.alternatives) for text in texts]
    else:
        work = _translate(server.between(pair), texts, asked)
        found = await answered(request, work, seconds=server.settings.seconds)
    return JSONResponse(_answer(found, asked, guess))


@router.post("/detect", summary="Guess the language of a text", openapi_extra=_body(DetectRequest))
async def detect(request: Request) -> Response:
    """Return the source languages, most probable first."""
    server = server_of(request)
    asked = await read_request(request, DetectRequest, server.settings)
    server.admit(request, asked.api_key)
    _require_served([asked.q], 0, server)
    return JSONResponse([guess.to_dict() for guess in server.detector.guesses(asked.q)])


@router.get("/languages", summary="The languages, and what each is translated into")
async def languages(request: Request) -> Response:
    """Return all languages, those that are only translated into as well."""
    pairs = [desk.model.pair for desk in server_of(request).desks]
    codes = dict.fromkeys(code for pair in pairs for code in pair)
    return JSONResponse(
        [
            {
                "code": code,
                "name": language_name(code),
                "targets": sorted({pair.target for pair in pairs if pair.source == code}),
            }
            for code in codes
        ]
    )


@router.get("/frontend/settings", summary="What a page for this API should know")
async def frontend_settings(request: Request) -> Response:
    """Return limits and the languages to begin with."""
    server = server_of(request)
    pair = server.desks[0].model.pair
    return JSONResponse(
        {
            "apiKeys": server.doorkeeper.wants_key,
            "keyRequired": server.doorkeeper.wants_key,
            "charLimit": server.settings.max_characters,
            "filesTranslation": False,
            "frontendTimeout": 500,
            "language": {
                side: {"code": code, "name": language_name(code)}
                for side, code in zip(("source", "target"), pair, strict=True)
            },
            "suggestions": False,
            "supportedFilesFormat": [],
        }
    )


@router.get("/health", summary="Whether the server is up")
async def health() -> Response:
    """Say that the server answers."""
    return JSONResponse({"status": "ok"})


def _require_served(texts: Sequence[str], alternatives: int, server: Server) -> None:
    """Refuse texts that are too many, too long or no texts."""
    settings = server.settings
    if len(texts) > settings.max_items:
        raise bad_request(
            f"Invalid request: the list of {len(texts)} texts exceeds the limit "
            f"({settings.max_items})"
        )
    size = sum(map(len, texts))
    if size > settings.max_characters:
        raise bad_request(
            f"Invalid request: request ({size}) exceeds text limit ({settings.max_characters})"
        )
    if alternatives > settings.max_alternatives:
        raise bad_request(
            f"Invalid request: alternatives ({alternatives}) exceeds the limit "
            f"({settings.max_alternatives})"
        )
    for text in texts:
        require_text(text)


async def _translate(
    desk: ModelWorker, texts: Sequence[str], asked: TranslateRequest
) -> list[list[str]]:
    """Return for each text its translation and the alternatives to it."""

    def split() -> list[Prepared]:
        return [prepare(text, kind=asked.format, pair=desk.model.pair) for text in texts]

    large = asked.format == "html" or sum(map(len, texts)) > LONG_TEXT
    prepared = await asyncio.to_thread(split) if large else split()
    manner = Manner(
        n_best=1 + asked.alternatives,
        attention=desk.model.translator.attends and any(one.tagged for one in prepared),
    )
    found = await desk.translate([s for one in prepared for s in one.sentences], manner)

    def join() -> list[list[str]]:
        left = iter(found)
        each = [(one, [next(left) for _ in one.sentences]) for one in prepared]
        return [
            [
                one.filled([linked(_nth(translation, rank)) for translation in own])
                for rank in range(manner.n_best)
            ]
            for one, own in each
        ]

    return await asyncio.to_thread(join) if large else join()


def _nth(translation: Translation, rank: int) -> Translation:
    """Return the alternative of this rank; the last one if the search found fewer."""
    every = (translation, *translation.alternatives)
    return every[min(rank, len(every) - 1)]


def _answer(
    found: Sequence[Sequence[str]], asked: TranslateRequest, guess: Guess | None
) -> dict[str, Any]:
    """Return the body: lists if a list was asked for."""
    many = isinstance(asked.q, list)
    answer: dict[str, Any] = {"translatedText": [one[0] for one in found] if many else found[0][0]}
    if asked.alternatives:
        others = [[text for text in dict.fromkeys(one) if text != one[0]] for one in found]
        answer["alternatives"] = others if many else others[0]
    if guess is not None:
        known = guess.to_dict()
        answer["detectedLanguage"] = [known] * len(found) if many else known
    return answer
