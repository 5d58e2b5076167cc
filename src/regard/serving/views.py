"""The routes of the page's panels: what is inside a model, changed and searched, in turn."""

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regard.serving import inspection
from regard.serving.api import body_schema, within_deadline
from regard.serving.limits import ServerSettings
from regard.serving.requests import AnyModel, read_request
from regard.serving.state import server_of

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
