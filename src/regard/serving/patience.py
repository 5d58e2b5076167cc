"""Waiting for an answer, but no longer than it is allowed to take or than somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

from regard.serving.errors import ApiError

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
