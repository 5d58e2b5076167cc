"""What a Prometheus server can ask for: requests, latencies, queues, batches; never a text."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._registry = registry
        self._requests = Counter(
            "regard_requests", "Requests by route and status.", ["route", "status"],
            registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "regard_request_seconds", "Time to the whole answer.", ["route"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._waiting = Gauge(
            "regard_queue_sentences", "Sentences that wait for a model.", ["model"],
            registry=registry,
        )  # fmt: skip
        self._batches = Histogram(
            "regard_batch_sentences", "Sentences of a batch.", ["model"],
            buckets=SIZES, registry=registry,
        )  # fmt: skip
        self._sentences = Counter(
            "regard_sentences", "Sentences translated.", ["model"], registry=registry
        )
        self._tokens = Counter(
            "regard_source_tokens", "Source symbols read, end marks included.", ["model"],
            registry=registry,
        )  # fmt: skip

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch_counter(self, model: str) -> Callable[[int, int], None]:
        """Return what counts the batches of a model."""

        def count(sentences: int, tokens: int) -> None:
            self._batches.labels(model).observe(sentences)
            self._sentences.labels(model).inc(sentences)
            self._tokens.labels(model).inc(tokens)

        return count

    def watch_queue(self, model: str, waiting: Callable[[], float]) -> None:
        """Let the length of a queue be asked for."""
        self._waiting.labels(model).set_function(waiting)

    def text(self) -> bytes:
        """Return all figures in Prometheus' format."""
        return generate_latest(self._registry)
