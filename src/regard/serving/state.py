"""What all routes share: workers, the models in memory, settings, rate limiter and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from fastapi import Request

from regard.base.budgets import SHOWN, shown
from regard.serving.errors import ApiError, bad_request
from regard.serving.languages import Detector, Pair, language_name
from regard.serving.limits import Keys, RateLimiter, ServerSettings
from regard.serving.memory import ModelMemory
from regard.serving.middleware import Metrics
from regard.serving.models import AnyServedModel
from regard.serving.task_models import TaskModel
from regard.serving.worker import ModelWorker, ViewWorker

AnyWorker = TypeVar("AnyWorker", bound=ViewWorker)


@dataclass(frozen=True)
class Server:
    """A server and its model workers, in the order in which the models were given."""

    settings: ServerSettings
    workers: list[ModelWorker]
    """Those of the translators."""
    viewers: list[ViewWorker]
    """Those of all models, of any task."""
    memory: ModelMemory
    detector: Detector
    rate_limiter: RateLimiter
    metrics: Metrics

    @classmethod
    def of(
        cls,
        models: Sequence[AnyServedModel | TaskModel],
        settings: ServerSettings,
        keys: Keys | None,
    ) -> Server:
        """Return a server with a worker for each model."""
        metrics, memory = Metrics(), ModelMemory(limit=settings.memory)
        workers: list[ModelWorker] = []
        viewers: list[ViewWorker] = []
        for model in models:
            if isinstance(model, TaskModel):
                viewers.append(ViewWorker(model, settings, memory))
            else:
                on_batch = metrics.batch_counter(model.name)
                worker = ModelWorker(model, settings, memory, on_batch=on_batch)
                metrics.watch_queue(model.name, lambda worker=worker: worker.batcher.waiting)  # type: ignore[misc]
                workers.append(worker)
                viewers.append(worker)
            metrics.watch_model(
                model.name,
                state=partial(memory.state, model.name),
                loads=partial(memory.loads, model.name),
            )
        return cls(
            settings=settings,
            workers=workers,
            viewers=viewers,
            memory=memory,
            detector=Detector([worker.model.pair.source for worker in workers]),
            rate_limiter=RateLimiter(keys=keys, requests_per_minute=settings.requests_per_minute),
            metrics=metrics,
        )

    def named(self, name: str | None) -> ModelWorker:
        """Return the worker of the named translator; the first one if no name is given."""
        return _named(self.workers, name, "translator")

    def viewer(self, name: str | None) -> ViewWorker:
        """Return the worker of the named model, of any task; the first one if none is named."""
        return _named(self.viewers, name, "model")

    def between(self, pair: Pair) -> ModelWorker:
        """Return the worker of the first model for a pair of languages."""
        for worker in self.workers:
            if worker.model.pair == pair:
                return worker
        pairs = [worker.model.pair for worker in self.workers]
        if not pairs:
            raise bad_request("This server has no translator.")
        for code, known in ((pair.source, {p.source for p in pairs}),
                            (pair.target, {p.target for p in pairs})):  # fmt: skip
            if code not in known:
                raise bad_request(f"{code[:SHOWN]} is not supported")
        names = [f"{language_name(code)} ({code})" for code in (pair.target, pair.source)]
        raise bad_request(f"{names[0]} is not available as a target language from {names[1]}")

    def admit_by_head(self, request: Request) -> bool:
        """Admit a request by its headers and address, or refuse it.

        Returns False if it may have its API key in the body, where it must be admitted again.
        """
        key = _key_of(request)
        if key or not self.rate_limiter.requires_key:
            self.admit(request, key)
            return True
        self.rate_limiter.require_patience(address=_address(request))
        return False

    def admit(self, request: Request, key: str) -> None:
        """Admit a request with this API key, or refuse it."""
        self.rate_limiter.admit(address=_address(request), key=key)

    def require_key(self, request: Request) -> None:
        """Admit a request without a body if the server needs keys; else it is free."""
        if self.rate_limiter.requires_key:
            self.admit(request, _key_of(request))


def _named(workers: Sequence[AnyWorker], name: str | None, what: str) -> AnyWorker:
    """Return the worker of this name, or say which there are."""
    for worker in workers:
        if name is None or worker.model.name == name:
            return worker
    known = ", ".join(worker.model.name for worker in workers) or "none"
    wanted = f"no {what}" if name is None else f"no {what} {shown(name)}"
    raise ApiError(404, f"There is {wanted}; there are: {known}.")


def _key_of(request: Request) -> str:
    """Return the API key in the headers: X-Api-Key, or Authorization as Prometheus sends it."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    bearer = token.strip() if kind.lower() == "bearer" else ""
    return request.headers.get("x-api-key", "") or bearer


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def server_of(request: Request) -> Server:
    """Return the server that received a request."""
    server: Server = request.app.state.server
    return server
