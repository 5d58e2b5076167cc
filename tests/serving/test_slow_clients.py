"""Clients that do not read the response: the connection is closed after a while."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from regard.serving import server

LARGE = 50_000_000  # more than a system keeps for a client that does not read


@pytest.fixture
def address(run_app: Callable[[FastAPI], AbstractContextManager[str]]) -> Iterator[tuple[str, int]]:
    """Serve a large answer."""
    app = FastAPI()
    app.add_api_route(
        "/", lambda: StreamingResponse(bytes(100_000) for _ in range(LARGE // 100_000))
    )
    with run_app(app) as url:
        parts = urlsplit(url)
        assert parts.hostname and parts.port
        yield parts.hostname, parts.port


def read_all(address: tuple[str, int], *, after: threading.Event | None) -> int:
    """Return how many bytes of the answer arrive, if they are read only after an event."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        if after is not None:
            assert after.wait(60)
        count = 0
        try:
            while part := connection.recv(1_000_000):
                count += len(part)
        except ConnectionResetError:
            pass
        return count


def test_a_response_that_is_not_read_is_aborted(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = threading.Event()
    lose = server.TimeLimitedProtocol.connection_lost

    def connection_lost(self: server.TimeLimitedProtocol, exc: Exception | None) -> None:
        lose(self, exc)
        lost.set()

    monkeypatch.setattr(server, "READING_SECONDS", 0.1)
    monkeypatch.setattr(server.TimeLimitedProtocol, "connection_lost", connection_lost)
    assert read_all(address, after=lost) < LARGE


def test_a_response_that_is_read_arrives_complete(address: tuple[str, int]) -> None:
    assert read_all(address, after=None) > LARGE
