"""The routes of the page: models, attention and streamed translations, each with a deadline."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from regard.base.errors import RegardError
from regard.serving.attention import AttentionRequest
from regard.serving.errors import ApiError, user_mistake
from regard.serving.middleware import INTERNAL_ERROR, log_failure
from regard.serving.requests import read_request, require_text
from regard.serving.state import server_of
from regard.serving.worker import ModelWorker

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

BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": AttentionRequest.model_json_schema()}},
    }
}


@router.get("/models", summary="The models, with their languages, sizes and examples")
async def models(request: Request) -> JSONResponse:
    """Return all models in the order in which they were given."""
    return JSONResponse({"models": [worker.description for worker in server_of(request).workers]})


@router.post("/attend", summary="A translation with its attention, steps and beam",
             openapi_extra=BODY)  # fmt: skip
async def attend(request: Request) -> Response:
    """Translate one sentence and return its attention weights, steps and beam."""
    worker, attention_request = await _read(request)
    seconds = server_of(request).settings.deadline_seconds
    work = worker.attend(attention_request)
    view = await within_deadline(request, work, seconds=seconds)
    return await asyncio.to_thread(JSONResponse, view)  # megabytes, for a long sentence


@router.post("/stream", summary="The same as /attend, with the text while it is decoded",
             openapi_extra=BODY)  # fmt: skip
async def stream(request: Request) -> Response:
    """Send an event for each token of a greedy search, then what /attend returns."""
    worker, attention_request = await _read(request)
    seconds = server_of(request).settings.deadline_seconds
    return StreamingResponse(
        _events(worker, attention_request, seconds=seconds),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _read(request: Request) -> tuple[ModelWorker, AttentionRequest]:
    """Return an attention request, checked, and the worker that answers it."""
    server = server_of(request)
    body = await read_request(request, AttentionRequest, server.settings)
    server.admit(request, body.api_key)
    require_text(body.q)
    require_text(body.prefix, name="prefix")
    return server.named(body.model), body


async def _events(
    worker: ModelWorker, request: AttentionRequest, *, seconds: float
) -> AsyncIterator[str]:
    """Yield server-sent events; an error is an event too, as the status has already been sent."""
    deadline = asyncio.get_running_loop().time() + seconds
    parts = worker.stream(request)
    try:
        while True:
            left = deadline - asyncio.get_running_loop().time()
            try:
                part = await asyncio.wait_for(anext(parts), max(left, 0.0))
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise deadline_error(seconds) from None
            if isinstance(part, str):
                yield _event("token", {"text": part})
            else:
                yield await asyncio.to_thread(_event, "done", part)
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
