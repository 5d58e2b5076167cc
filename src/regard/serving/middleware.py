"""Metrics, and the middleware: security headers, a log line, and no traceback in a response."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Collection

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serving.errors import ApiError

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The metrics of one server, in a Prometheus registry of their own."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._registry = registry
        self._requests = Counter(
            "regard_requests", "Requests by route and status.", ["route", "status"],
            registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "regard_request_seconds", "Seconds until the whole response was sent.", ["route"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._waiting = Gauge(
            "regard_queue_sentences", "Sentences waiting for a model.", ["model"],
            registry=registry,
        )  # fmt: skip
        self._batches = Histogram(
            "regard_batch_sentences", "Sentences in a batch.", ["model"],
            buckets=SIZES, registry=registry,
        )  # fmt: skip
        self._sentences = Counter(
            "regard_sentences", "Sentences translated.", ["model"], registry=registry
        )
        self._tokens = Counter(
            "regard_source_tokens", "Source tokens read, end tokens included.", ["model"],
            registry=registry,
        )  # fmt: skip

        self._states = {
            "loaded": Gauge(
                "regard_model_loaded", "Whether a model is in memory.", ["model"],
                registry=registry,
            ),
            "failed": Gauge(
                "regard_model_failed", "Whether a model could not be loaded.", ["model"],
                registry=registry,
            ),
        }  # fmt: skip
        self._loads = Gauge(
            "regard_model_loads", "How often a model was loaded.", ["model"], registry=registry
        )

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch_counter(self, model: str) -> Callable[[int, int], None]:
        """Return a function that counts a batch of a model."""

        def count(sentences: int, tokens: int) -> None:
            self._batches.labels(model).observe(sentences)
            self._sentences.labels(model).inc(sentences)
            self._tokens.labels(model).inc(tokens)

        return count

    def watch_queue(self, model: str, waiting: Callable[[], float]) -> None:
        """Report the length of a model's queue, read from `waiting`."""
        self._waiting.labels(model).set_function(waiting)

    def watch_model(
        self, model: str, *, state: Callable[[], str], loads: Callable[[], int]
    ) -> None:
        """Report whether a model is in memory or could not be loaded, and how often it was."""
        for name, gauge in self._states.items():
            gauge.labels(model).set_function(lambda name=name: float(state() == name))  # type: ignore[misc]
        self._loads.labels(model).set_function(loads)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


INTERNAL_ERROR = "Something went wrong inside the server."
LOG = logging.getLogger("regard.serving")

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


class RequestMiddleware:
    """Adds headers to responses, counts and logs them, and turns exceptions into a 500.

    Written in plain ASGI: Starlette's base class would hide when a client disconnects.
    """

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

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except ClientDisconnect:
            status = 499
        except Exception as error:
            log_failure(error)
            if not status:
                answer = ApiError(500, INTERNAL_ERROR).response()
                await answer(scope, receive, send_with_headers)
        finally:
            seconds = time.monotonic() - start
            route = self._route(scope["path"])
            self._metrics.count_request(route, status, seconds)
            # Neither the query nor the address is logged: both may be private.
            LOG.info("%s %s %d %.0f ms", scope["method"], route, status, 1_000 * seconds)

    def _route(self, path: str) -> str:
        """Return a path as one of a few names, so that the metrics stay few."""
        if path.startswith("/static/"):
            return "/static"
        return path if path in self._routes else "other"


def log_failure(error: Exception) -> None:
    """Log where an error came from, but not its message, which may hold a user's text."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    LOG.error("%s inside the server:\n%s", type(error).__name__, frames)
