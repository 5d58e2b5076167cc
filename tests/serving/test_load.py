"""Full queues, deadlines, clients that disconnect, and shutting down."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(8) as found:
        yield found


def post(server: Any, path: str = "/translate", **fields: Any) -> httpx.Response:
    fields = {"q": "badal kofen", "source": "en", "target": "de", **fields}
    return httpx.post(server.url + path, json=fields, timeout=30)


def until(condition: Callable[[], bool]) -> None:
    """Wait until other threads make the condition true."""
    for _ in range(1_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("the condition did not become true")


def waiting(server: Any) -> int:
    """Return how many sentences wait for the model, as the metrics say."""
    metrics = httpx.get(server.url + "/metrics").text
    found = re.search(r'^regard_queue_sentences\{model="gated"\} ([\d.]+)$', metrics, re.MULTILINE)
    assert found
    return int(float(found[1]))


def disconnect(server: Any, path: str) -> None:
    """Send a request and disconnect before it is answered."""
    place = urlsplit(server.url)
    body = b'{"q": "migon", "source": "en", "target": "de"}'
    with socket.create_connection((place.hostname, place.port)) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        if path == "/translate":
            until(lambda: waiting(server) == 1)


def test_a_full_queue_is_busy(gated: Callable[..., Any], pool: ThreadPoolExecutor) -> None:
    server = gated(queue=2)
    first = pool.submit(post, server)
    server.engine.begun.acquire()
    others = [pool.submit(post, server) for _ in range(2)]
    until(lambda: waiting(server) == 2)
    refused = post(server)
    assert refused.status_code == 429
    assert refused.json() == {"error": "The server is busy: too much is waiting. Try again."}
    assert int(refused.headers["retry-after"]) >= 1
    server.engine.gate.set()
    for answer in (first, *others):
        assert answer.result().json() == {"translatedText": "LADAB NEFOK"}


def test_more_views_than_can_be_shown(gated: Callable[..., Any], pool: ThreadPoolExecutor) -> None:
    server = gated(views=1)
    first = pool.submit(post, server, "/attend")
    server.engine.begun.acquire()
    assert post(server, "/attend").status_code == 429
    assert "event: error" in post(server, "/stream").text
    server.engine.gate.set()
    assert first.result().json()["text"] == "LADAB NEFOK"


@pytest.mark.parametrize("path", ["/translate", "/attend"])
def test_a_request_that_misses_its_deadline_is_cancelled(
    gated: Callable[..., Any], path: str
) -> None:
    server = gated(deadline_seconds=0.2)
    answer = post(server, path)
    assert answer.status_code == 503
    assert answer.json() == {"error": "The answer took longer than 0.2 seconds. Try again."}
    assert answer.headers["retry-after"] == "5"


def test_a_stream_that_misses_its_deadline_says_so(gated: Callable[..., Any]) -> None:
    text = post(gated(deadline_seconds=0.2), "/stream").text
    said = json.loads(text.splitlines()[-2].removeprefix("data: "))
    assert said == {
        "error": "The answer took longer than 0.2 seconds. Try again.",
        "status": 503,
        "retry_after": 5,
    }


def test_a_client_that_disconnects_is_not_translated_for(
    gated: Callable[..., Any], pool: ThreadPoolExecutor
) -> None:
    server = gated()
    first = pool.submit(post, server)
    server.engine.begun.acquire()
    disconnect(server, "/translate")
    until(lambda: waiting(server) == 0)
    server.engine.gate.set()
    assert first.result().status_code == 200
    assert post(server).status_code == 200
    assert server.engine.searched == 2
    assert 'status="499"' in httpx.get(server.url + "/metrics").text


def test_a_client_that_disconnects_from_a_stream_frees_the_model(gated: Callable[..., Any]) -> None:
    server = gated()
    disconnect(server, "/stream")
    server.engine.gate.set()
    assert post(server).json() == {"translatedText": "LADAB NEFOK"}


def test_a_server_that_stops_finishes_what_has_begun(
    gated: Callable[..., Any], pool: ThreadPoolExecutor
) -> None:
    server = gated(batch_sentences=1)
    answers: list[Future[httpx.Response]] = [pool.submit(post, server) for _ in range(3)]
    server.engine.begun.acquire()
    until(lambda: waiting(server) == 2)
    server.stop()
    with pytest.raises(httpx.ConnectError):  # new connections are refused
        for _ in range(1_000):
            with suppress(httpx.ReadError):  # a connection made while the socket was closing
                httpx.get(server.url + "/health")
            time.sleep(0.01)
    server.engine.gate.set()
    assert [answer.result().json() for answer in answers] == [{"translatedText": "LADAB NEFOK"}] * 3


def test_one_at_a_time(gated: Callable[..., Any], pool: ThreadPoolExecutor) -> None:
    server = gated(batch_sentences=1)
    server.engine.gate.set()
    assert post(server, q=["badal", "kofen", "migon"]).json()["translatedText"] == [
        "LADAB", "NEFOK", "NOGIM",
    ]  # fmt: skip
    assert (
        'regard_batch_sentences_count{model="gated"} 3.0' in httpx.get(server.url + "/metrics").text
    )
