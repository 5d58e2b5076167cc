"""The listening socket."""

from __future__ import annotations

import asyncio
import socket

import pytest

from regard.base.errors import SettingsError
from regard.serving.server import listening_socket


def test_a_port_that_is_taken_is_named() -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"Cannot listen at 127.0.0.1, port {port}: "):
            listening_socket("127.0.0.1", port)


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(SettingsError, match="Choose another with --host and --port"):
        listening_socket("203.0.113.7", 0)


def test_a_client_that_comes_before_the_server_has_begun_waits() -> None:
    with (
        listening_socket("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname(), timeout=10) as client,
    ):
        client.sendall(b"early")
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.recv(10) == b"early"


def test_small_responses_are_not_delayed() -> None:
    async def undelayed() -> list[int]:
        seen = []

        async def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            seen.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = listening_socket("127.0.0.1", 0)
        async with await asyncio.start_server(look, sock=listening):
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            await reader.read()
            writer.close()
        return seen

    assert asyncio.run(undelayed()) == [1]
