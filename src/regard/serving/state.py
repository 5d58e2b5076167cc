"""What all routes share: the models at work, the settings, the rate limiter and the counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request

from regard.serving.errors import ApiError, bad_request
from regard.serving.languages import Detector, Pair, language_name
from regard.serving.limits import Keys, RateLimiter, ServerSettings
from regard.serving.middleware import Metrics
from regard.serving.models import ServedModel
from regard.serving.worker import ModelWorker


@dataclass(frozen=True)
class Server:
    """One server with its models, in the order in which they were given."""

    settings: ServerSettings
    desks: list[ModelWorker]
    detector: Detector
    doorkeeper: RateLimiter
    metrics: Metrics

    @classmethod
    def of(
        cls, models: Sequence[ServedModel], settings: ServerSettings, keys: Keys | None
    ) -> Server:
        """Set up a desk for every model."""
        metrics = Metrics()
        desks = []
        for model in models:
            desk = ModelWorker(model, settings, watch=metrics.batch_counter(model.name))
            metrics.watch_queue(model.name, lambda desk=desk: desk.gatherer.waiting)  # type: ignore[misc]
            desks.append(desk)
        return cls(
            settings=settings,
            desks=desks,
            detector=Detector([model.pair.source for model in models]),
            doorkeeper=RateLimiter(keys=keys, requests_per_minute=settings.requests_per_minute),
            metrics=metrics,
        )

    def named(self, name: str | None) -> ModelWorker:
        """Return the model of this name; the first one if none is named."""
        for desk in self.desks:
            if name is None or desk.model.name == name:
                return desk
        known = ", ".join(desk.model.name for desk in self.desks)
        raise ApiError(404, f"There is no model {name!r}; there are: {known}.")

    def between(self, pair: Pair) -> ModelWorker:
        """Return the first model for two languages."""
        for desk in self.desks:
            if desk.model.pair == pair:
                return desk
        pairs = [desk.model.pair for desk in self.desks]
        for code, known in ((pair.source, {p.source for p in pairs}),
                            (pair.target, {p.target for p in pairs})):  # fmt: skip
            if code not in known:
                raise bad_request(f"{code} is not supported")
        names = [f"{language_name(code)} ({code})" for code in (pair.target, pair.source)]
        raise bad_request(f"{names[0]} is not available as a target language from {names[1]}")

    def admit(self, request: Request, key: str) -> None:
        """Let a request pass, or refuse it."""
        key = key or request.headers.get("x-api-key", "")
        self.doorkeeper.admit(address=request.client.host if request.client else "", key=key)


def server_of(request: Request) -> Server:
    """Return the server that a request came to."""
    server: Server = request.app.state.server
    return server
