"""LibreTranslate's routes, so that its clients work here unchanged.

The statuses are its own: 400 for what cannot be served, 403 for a key that is missing or wrong,
429 for too many requests. 408, 413 and, for a missed deadline, 503 are additions.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from regard.documents.segments import linked
from regard.serving import requests
from regard.serving.api import within_deadline
from regard.serving.batcher import TranslationOptions
from regard.serving.errors import ApiError, bad_request
from regard.serving.forms import FORM
from regard.serving.languages import UNNAMED, Guess, Pair, language_name
from regard.serving.state import Server, server_of
from regard.serving.worker import ModelWorker
from regard.tasks.translation.results import Translation

router = APIRouter()

AUTO = "auto"
# Longer texts and HTML are split in a thread, so that they do not hold up other requests.
LONG_TEXT = 5_000


class TranslateRequest(BaseModel):
    """Texts to translate."""

    q: str | list[str] = Field(description="a text, or a list of them")
    source: str = Field(description='code of a language, or "auto"')
    target: str = Field(description="code of a language")
    format: requests.TextFormat = Field("text", description="html keeps tags")
    alternatives: int = Field(0, ge=0, description="further translations of each text")
    api_key: str = Field("", description="where the server requires one")


class FoundText(NamedTuple):
    """The translations of a text, best first, and its words that the model does not know."""

    texts: list[str]
    unknown: tuple[str, ...]


class DetectRequest(BaseModel):
    """A text in some language."""

    q: str = Field(description="a text")
    api_key: str = Field("", description="where the server requires one")


def _body_schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = {"schema": model.model_json_schema()}
    content = {"application/json": schema, FORM: schema}
    return {"requestBody": {"required": True, "content": content}}


@router.post("/translate", summary="Translate texts", openapi_extra=_body_schema(TranslateRequest))
async def translate(request: Request) -> Response:
    """Translate a text or a list of texts; paragraphs, line breaks and tags are kept."""
    server = server_of(request)
    body = await requests.read_request(request, TranslateRequest, server)
    texts = body.q if isinstance(body.q, list) else [body.q]
    _require_within_limits(texts, body.alternatives, server)
    guess = server.detector.best("\n".join(texts)) if body.source == AUTO else None
    pair = Pair(guess.language if guess else body.source, body.target)
    if pair.source == pair.target:  # as LibreTranslate does: there is nothing to translate
        found = [FoundText([text] * (1 + body.alternatives), ()) for text in texts]
    else:
        work = _translate(server.between(pair), texts, body)
        found = await within_deadline(request, work, seconds=server.settings.deadline_seconds)
    return JSONResponse(_answer(found, body, guess))


@router.post(
    "/detect", summary="Guess the language of a text", openapi_extra=_body_schema(DetectRequest)
)
async def detect(request: Request) -> Response:
    """Return the source languages, most probable first."""
    server = server_of(request)
    body = await requests.read_request(request, DetectRequest, server)
    _require_within_limits([body.q], 0, server)
    return JSONResponse([guess.to_dict() for guess in server.detector.guesses(body.q)])


@router.get("/languages", summary="The languages, and what each is translated into")
async def languages(request: Request) -> Response:
    """Return all languages, including those that are only targets."""
    pairs = [worker.model.pair for worker in server_of(request).workers]
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


@router.get("/frontend/settings", summary="Limits and languages for a page that uses this API")
async def frontend_settings(request: Request) -> Response:
    """Return the limits and the languages to start with."""
    server = server_of(request)
    pair = server.workers[0].model.pair if server.workers else UNNAMED
    return JSONResponse(
        {
            "apiKeys": server.rate_limiter.requires_key,
            "keyRequired": server.rate_limiter.requires_key,
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
async def health(request: Request) -> Response:
    """Say that the server answers and that all its models do."""
    for worker in server_of(request).workers:
        if not worker.running:
            raise ApiError(503, f"The model {worker.model.name} has stopped.")
    return JSONResponse({"status": "ok"})


def _require_within_limits(texts: Sequence[str], alternatives: int, server: Server) -> None:
    """Refuse texts that are too many, too long or not valid text."""
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


async def _translate(
    worker: ModelWorker, texts: Sequence[str], body: TranslateRequest
) -> list[FoundText]:
    """Return for each text its translation, then the alternatives."""

    def split() -> list[requests.PreparedText]:
        return [requests.prepare(text, kind=body.format, pair=worker.model.pair) for text in texts]

    large = body.format == "html" or sum(map(len, texts)) > LONG_TEXT
    prepared = await asyncio.to_thread(split) if large else split()
    options = TranslationOptions(
        n_best=1 + body.alternatives,
        attention=worker.description["attends"] and any(one.tagged for one in prepared),
    )
    found = await worker.translate([s for one in prepared for s in one.sentences], options)

    def join() -> list[FoundText]:
        left = iter(found)
        each = [(one, [next(left) for _ in one.sentences]) for one in prepared]
        return [
            FoundText(
                [
                    one.filled([linked(_nth(translation, rank)) for translation in own])
                    for rank in range(options.n_best)
                ],
                tuple(dict.fromkeys(word for sentence in own for word in sentence.unknown)),
            )
            for one, own in each
        ]

    return await asyncio.to_thread(join) if large else join()


def _nth(translation: Translation, rank: int) -> Translation:
    """Return the translation of this rank; the last one if the search found fewer."""
    every = (translation, *translation.alternatives)
    return every[min(rank, len(every) - 1)]


def _answer(
    found: Sequence[FoundText], body: TranslateRequest, guess: Guess | None
) -> dict[str, Any]:
    """Return the response: lists if the request had a list."""
    many = isinstance(body.q, list)
    best = [one.texts[0] for one in found]
    answer: dict[str, Any] = {"translatedText": best if many else best[0]}
    if body.alternatives:
        others = [
            [text for text in dict.fromkeys(one.texts) if text != one.texts[0]] for one in found
        ]
        answer["alternatives"] = others if many else others[0]
    if any(one.unknown for one in found):  # an addition to LibreTranslate's fields
        unknown = [list(one.unknown) for one in found]
        answer["unknownWords"] = unknown if many else unknown[0]
    if guess is not None:
        known = guess.to_dict()
        answer["detectedLanguage"] = [known] * len(found) if many else known
    return answer
