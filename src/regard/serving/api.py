"""Waiting for an answer, but no longer than it is allowed to take or than somebody waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from regard.base.errors import RegardError
from regard.serving.attention import AttentionRequest
from regard.serving.errors import ApiError, user_mistake
from regard.serving.middleware import INSIDE, note_failure
from regard.serving.requests import read_request, require_text
from regard.serving.state import server_of
from regard.serving.worker import ModelWorker

Value = TypeVar("Value")


def too_slow(seconds: float) -> ApiError:
    """Return the error of a request that was not answered in time."""
    return ApiError(
        503, f"The answer took longer than {seconds:g} seconds. Try again.", retry_after=5
    )


async def answered(request: Request, work: Coroutine[Any, Any, Value], *, seconds: float) -> Value:
    """Return what the work returns; it is cancelled if the client leaves or time is up."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        done, _ = await asyncio.wait(
            {task, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if task in done:
            return task.result()
        if leaving in done:
            raise ApiError(499, "The client has left.")
        raise too_slow(seconds)
    finally:
        task.cancel()
        leaving.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


router = APIRouter()

BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": AttentionRequest.model_json_schema()}},
    }
}


@router.get("/models", summary="The models, with what a page has to know of them")
async def models(request: Request) -> JSONResponse:
    """Return all models in the order in which they were given."""
    return JSONResponse({"models": [desk.description for desk in server_of(request).desks]})


@router.post("/attend", summary="A translation with its attention, steps and beam",
             openapi_extra=BODY)  # fmt: skip
async def attend(request: Request) -> Response:
    """Translate one sentence and return everything that there is to see."""
    desk, question = await _asked(request)
    seconds = server_of(request).settings.seconds
    found = await answered(request, desk.look(question), seconds=seconds)
    return await asyncio.to_thread(JSONResponse, found)  # megabytes, for a long sentence


@router.post("/stream", summary="The same as /attend, with the text as it is being written",
             openapi_extra=BODY)  # fmt: skip
async def stream(request: Request) -> Response:
    """Send an event for every symbol of a greedy search, then what /attend returns."""
    desk, question = await _asked(request)
    seconds = server_of(request).settings.seconds
    return StreamingResponse(
        _events(desk, question, seconds=seconds),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _asked(request: Request) -> tuple[ModelWorker, AttentionRequest]:
    server = server_of(request)
    question = await read_request(request, AttentionRequest, server.settings)
    server.admit(request, question.api_key)
    require_text(question.q)
    require_text(question.prefix, name="prefix")
    return server.named(question.model), question


async def _events(
    desk: ModelWorker, question: AttentionRequest, *, seconds: float
) -> AsyncIterator[str]:
    """Yield server-sent events; an error is one too, since the answer has begun already."""
    end = asyncio.get_running_loop().time() + seconds
    parts = desk.stream(question)
    try:
        while True:
            left = end - asyncio.get_running_loop().time()
            try:
                part = await asyncio.wait_for(anext(parts), max(left, 0.0))
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise too_slow(seconds) from None
            if isinstance(part, str):
                yield _event("token", {"text": part})
            else:
                yield await asyncio.to_thread(_event, "done", part)
    except ApiError as error:
        yield _failure(error)
    except RegardError as error:
        yield _failure(user_mistake(error))
    except Exception as error:
        note_failure(error)
        yield _failure(ApiError(500, INSIDE))
    finally:
        await parts.aclose()  # type: ignore[attr-defined]


def _failure(error: ApiError) -> str:
    """Return an event with what status and headers would have said before the answer began."""
    wait = {} if error.retry_after is None else {"retry_after": error.retry_after}
    return _event("error", {"error": error.problem, "status": error.status, **wait})


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
