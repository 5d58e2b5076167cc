"""The routes of the page: models, attention and streamed translations, each with a deadline."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, TypeAlias, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel

from regard.base.errors import RegardError
from regard.serving.attention import AttentionRequest, TextRequest
from regard.serving.batcher import TranslationOptions
from regard.serving.errors import ApiError, user_mistake
from regard.serving.middleware import INTERNAL_ERROR, log_failure
from regard.serving.requests import OTHER_BREAK, read_request
from regard.serving.state import server_of
from regard.serving.worker import ModelWorker
from regard.text.sentences import LONGEST_SENTENCE, split_sentences

T = TypeVar("T")


def deadline_error(seconds: float) -> ApiError:
    """Return the error for a request that missed its deadline."""
    return ApiError(
        503, f"The answer took longer than {seconds:g} seconds. Try again.", retry_after=5
    )


async def within_deadline(request: Request, work: Coroutine[Any, Any, T], *, seconds: float) -> T:
    """Return the result of the work; cancel it if the client disconnects or time is up."""
    task = asyncio.ensure_future(work)
    disconnected = asyncio.ensure_future(_disconnected(request))
    try:
        done, _ = await asyncio.wait(
            {task, disconnected}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if task in done:
            return task.result()
        if disconnected in done:
            raise ApiError(499, "The client has disconnected.")
        raise deadline_error(seconds)
    finally:
        task.cancel()
        disconnected.cancel()
        await asyncio.gather(task, disconnected, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


router = APIRouter()


def body_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """Return how a route describes the body that it takes."""
    schema = {"application/json": {"schema": kind.model_json_schema()}}
    return {"requestBody": {"required": True, "content": schema}}


# A name and its data, as one server-sent event.
StreamEvent: TypeAlias = tuple[str, dict[str, Any]]
# Sentences of a text that are queued at once: a long text takes turns with other requests.
SENTENCES_AT_ONCE = 16


@router.get("/models", summary="The models, with their languages, sizes and examples")
async def models(request: Request) -> JSONResponse:
    """Return all models in the order in which they were given, and the longest text."""
    server = server_of(request)
    server.require_key(request)
    return JSONResponse(
        {
            "models": [
                {**worker.description, "state": server.memory.state(worker.model.name)}
                for worker in server.viewers
            ],
            "max_characters": server.settings.max_characters,
        }
    )


@router.post("/attend", summary="A translation with its attention, steps and beam",
             openapi_extra=body_schema(AttentionRequest))  # fmt: skip
async def attend(request: Request) -> Response:
    """Translate one sentence and return its attention weights, steps and beam."""
    worker, attention_request = await _read(request)
    seconds = server_of(request).settings.deadline_seconds
    work = worker.attend(attention_request)
    view = await within_deadline(request, work, seconds=seconds)
    return await asyncio.to_thread(JSONResponse, view)  # megabytes, for a long sentence


@router.post("/stream", summary="The same as /attend, with the text while it is decoded",
             openapi_extra=body_schema(AttentionRequest))  # fmt: skip
async def stream(request: Request) -> Response:
    """Send an event for each token of a greedy search, then what /attend returns."""
    worker, attention_request = await _read(request)
    seconds = server_of(request).settings.deadline_seconds
    return event_stream(_growing(worker, attention_request), seconds=seconds)


@router.post("/text", summary="A text of many sentences, translated sentence by sentence",
             openapi_extra=body_schema(TextRequest))  # fmt: skip
async def text(request: Request) -> Response:
    """Send the sentences of a text in one event, then their translations as they are found.

    The events are "sentences" (each with its text and the white space after it), "translations"
    (from which sentence on; each with its text and the unknown words, or an error) and "done".
    """
    server = server_of(request)
    body = await read_request(request, TextRequest, server)
    longest = server.settings.max_characters
    if len(body.q) > longest:
        raise ApiError(413, f"The text has {len(body.q)} characters, more than {longest}.")
    parts = _translations(server.named(body.model), body.q)
    return event_stream(parts, seconds=server.settings.deadline_seconds, each=True)


async def _read(request: Request) -> tuple[ModelWorker, AttentionRequest]:
    """Return an attention request, checked, and the worker that answers it."""
    server = server_of(request)
    body = await read_request(request, AttentionRequest, server)
    return server.named(body.model), body


async def _growing(worker: ModelWorker, request: AttentionRequest) -> AsyncIterator[StreamEvent]:
    """Yield a translation as it grows, then with its attention."""
    parts = worker.stream(request)
    try:
        async for part in parts:
            yield ("token", {"text": part}) if isinstance(part, str) else ("done", part)
    finally:
        await parts.aclose()  # type: ignore[attr-defined]


async def _translations(worker: ModelWorker, given: str) -> AsyncIterator[StreamEvent]:
    """Yield the sentences of a text, then their translations, some at a time."""
    breaks = OTHER_BREAK.sub("\n", given).strip()
    language = worker.model.pair.source
    split = await asyncio.to_thread(
        split_sentences, breaks, language=language, hard_breaks=True, longest=LONGEST_SENTENCE
    )
    yield "sentences", {"sentences": [each._asdict() for each in split]}
    for first in range(0, len(split), SENTENCES_AT_ONCE):
        some = [each.text for each in split[first : first + SENTENCES_AT_ONCE]]
        yield "translations", {"from": first, "translations": await _each(worker, some)}
    yield "done", {}


async def _each(worker: ModelWorker, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the translations of sentences; one that cannot be translated has an error instead."""
    try:
        found = await worker.translate(texts, TranslationOptions())
    except ApiError as error:
        if error.status != 400:
            raise
        if len(texts) == 1:
            return [{"error": error.problem}]
        return [one for text in texts for one in await _each(worker, [text])]
    return [{"text": one.text, "unknown": list(one.unknown)} for one in found]


def event_stream(
    parts: AsyncIterator[StreamEvent], *, seconds: float, each: bool = False
) -> StreamingResponse:
    """Return a response that sends these events; the deadline is that of all, or of `each`."""
    return StreamingResponse(
        _events(parts, seconds=seconds, each=each),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(
    parts: AsyncIterator[StreamEvent], *, seconds: float, each: bool
) -> AsyncIterator[str]:
    """Yield server-sent events; an error is an event too, as the status has already been sent.

    The deadline is that of all events together, or of `each`.
    """
    now = asyncio.get_running_loop().time
    deadline = now() + seconds
    try:
        while True:
            left = seconds if each else deadline - now()
            try:
                name, data = await asyncio.wait_for(anext(parts), max(left, 0.0))
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise deadline_error(seconds) from None
            large = name == "done"
            yield await asyncio.to_thread(_event, name, data) if large else _event(name, data)
    except ApiError as error:
        yield _failure(error)
    except RegardError as error:
        yield _failure(user_mistake(error))
    except Exception as error:
        log_failure(error)
        yield _failure(ApiError(500, INTERNAL_ERROR))
    finally:
        await parts.aclose()  # type: ignore[attr-defined]


def _failure(error: ApiError) -> str:
    """Return an event with what the status and headers of an error response would say."""
    wait = {} if error.retry_after is None else {"retry_after": error.retry_after}
    return _event("error", {"error": error.problem, "status": error.status, **wait})


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
