"""Around every request: security headers, a count, a line in the log, and no traceback outside."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serving.errors import ApiError
from regard.serving.metrics import Metrics

INSIDE = "Something went wrong inside the server."
LOG = logging.getLogger("regard.serving")

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


class Guard:
    """Pure ASGI, so that it stands between nobody and the end of a connection."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, routes: Collection[str]):
        self._app = app
        self._metrics = metrics
        self._routes = frozenset(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.monotonic(), 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_guarded)
        except ClientDisconnect:
            status = 499
        except Exception as error:
            note_failure(error)
            if not status:
                answer = ApiError(500, INSIDE).response()
                await answer(scope, receive, send_guarded)
        finally:
            seconds = time.monotonic() - start
            route = self._route(scope["path"])
            self._metrics.answered(route, status, seconds)
            # Neither the query nor the address: both may be secrets.
            LOG.info("%s %s %d %.0f ms", scope["method"], route, status, 1_000 * seconds)

    def _route(self, path: str) -> str:
        """Return a path as one of a few names, whatever clients ask for."""
        if path.startswith("/static/"):
            return "/static"
        return path if path in self._routes else "other"


def note_failure(error: Exception) -> None:
    """Log where an error came from, but not what it says: that may be somebody's text."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    LOG.error("%s inside the server:\n%s", type(error).__name__, frames)
