"""The routes of the page's panels: what is inside a model, changed and searched, in turn."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regard.serving import inspection, task_views
from regard.serving.api import StreamEvent, body_schema, event_stream, within_deadline
from regard.serving.limits import ServerSettings
from regard.serving.requests import AnyModel, read_request
from regard.serving.state import server_of
from regard.serving.worker import ViewWorker

router = APIRouter()


async def _answered(
    request: Request,
    kind: type[AnyModel],
    answer: Callable[[Any, AnyModel, ServerSettings], dict[str, Any]],
) -> Response:
    """Return what a function says of the model that a request names, within the deadline."""
    server = server_of(request)
    body = await read_request(request, kind, server)
    worker = server.viewer(getattr(body, "model", None))
    settings = server.settings
    work = worker.ask(lambda loaded: answer(loaded, body, settings))
    found = await within_deadline(request, work, seconds=settings.deadline_seconds)
    return await asyncio.to_thread(JSONResponse, found)


@router.post("/head", summary="Every number of one head of attention",
             openapi_extra=body_schema(inspection.HeadRequest))  # fmt: skip
async def head(request: Request) -> Response:
    """Return queries, keys, scores, weights and values, as `regard trace --json` has them."""
    return await _answered(request, inspection.HeadRequest, inspection.head_numbers)


@router.post("/lens", summary="What each layer would have said",
             openapi_extra=body_schema(inspection.LensRequest))  # fmt: skip
async def lens(request: Request) -> Response:
    """Return the guesses of each layer at each step."""
    return await _answered(request, inspection.LensRequest, inspection.lens_numbers)


@router.post("/intervene", summary="The output when something inside the model is changed",
             openapi_extra=body_schema(inspection.ChangeRequest))  # fmt: skip
async def intervene(request: Request) -> Response:
    """Return the output with interventions beside the one without them, and what changed."""
    return await _answered(request, inspection.ChangeRequest, inspection.changed_output)


@router.post("/where", summary="Training examples in which a word attends to a word",
             openapi_extra=body_schema(inspection.WhereRequest))  # fmt: skip
async def where(request: Request) -> Response:
    """Return the strongest places of a head in the built-in corpus."""
    return await _answered(request, inspection.WhereRequest, inspection.places_found)


@router.post("/film", summary="What a model looked at while it was trained",
             openapi_extra=body_schema(inspection.FilmRequest))  # fmt: skip
async def film(request: Request) -> Response:
    """Return the frames of a training, from its beginning to its end."""
    server = server_of(request)
    body = await read_request(request, inspection.FilmRequest, server)
    folder = server.viewer(body.model).model.folder
    return JSONResponse(await asyncio.to_thread(inspection.film_frames, folder))


@router.post("/look", summary="What a model of another task looks at",
             openapi_extra=body_schema(task_views.LookQuestion))  # fmt: skip
async def look(request: Request) -> Response:
    """Return heads and expectations of a text, evidence of a label, a forecast or neighbours."""
    return await _answered(request, task_views.LookQuestion, task_views.task_view)


@router.post("/generate", summary="What a language model writes, while it writes it",
             openapi_extra=body_schema(task_views.GenerationRequest))  # fmt: skip
async def generate(request: Request) -> Response:
    """Send an event "token" for each new part of a continuation, then "done" with all of it."""
    server = server_of(request)
    body = await read_request(request, task_views.GenerationRequest, server)
    parts = _continuing(server.viewer(body.model), body, server.settings)
    return event_stream(parts, seconds=server.settings.deadline_seconds)


async def _continuing(
    worker: ViewWorker, body: task_views.GenerationRequest, settings: ServerSettings
) -> AsyncIterator[StreamEvent]:
    """Yield a continuation as it grows, then the whole."""
    parts = worker.growing(lambda loaded, tell: task_views.continued(loaded, body, settings, tell))
    try:
        async for part in parts:
            yield ("token", {"text": part}) if isinstance(part, str) else ("done", part)
    finally:
        await parts.aclose()  # type: ignore[attr-defined]
