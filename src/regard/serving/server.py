"""The server process: its socket, time limits for slow clients, and uvicorn's configuration."""

import asyncio
import socket

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.base.errors import SettingsError

HEAD_SECONDS = 10.0
READING_SECONDS = 30.0


class TimeLimitedProtocol(H11Protocol):
    """HTTP by h11, with time limits for request headers and for clients that do not read."""

    _head_timer: asyncio.TimerHandle | None = None
    _reading_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Parse the data, and stop or start the timer for the headers."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_timer is None:
            self._wait_for_head()

    def pause_writing(self) -> None:
        """Pause the response until the client reads, and start a timer for that."""
        super().pause_writing()
        # Abort rather than close: closing would wait until the client has read everything.
        self._reading_timer = self.loop.call_later(READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue the response."""
        super().resume_writing()
        self._stop_reading_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers of the connection."""
        self._stop_waiting()
        self._stop_reading_timer()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_reading_timer(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None


# Longer than proxies keep idle connections open, so that it is the proxy that closes them.
KEEP_ALIVE_SECONDS = 75
BACKLOG = 1_024
CONNECTIONS = 2_000


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise an error that says why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Unless the protocol is named, asyncio leaves Nagle's algorithm on, and the body of a
    # response waits 40 ms until the client has acknowledged its headers.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        # Two sockets that do not listen yet may share an address: a second server would
        # fail only after loading its models.
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        raise SettingsError(
            f"Cannot listen at {host}, port {port}: {error.strerror or error}. Choose another "
            "with --host and --port."
        ) from error
    return found


def make_server(
    app: FastAPI, *, drain_seconds: float = 30.0, proxies: str = "127.0.0.1"
) -> uvicorn.Server:
    """Return a server, not yet running; `proxies` are trusted to forward client addresses."""
    config = uvicorn.Config(
        app,
        http=TimeLimitedProtocol,
        ws="none",
        access_log=False,  # it would log query strings; our middleware writes a line of its own
        log_level="warning",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(drain_seconds),
        forwarded_allow_ips=proxies,
        backlog=BACKLOG,
        limit_concurrency=CONNECTIONS,
        server_header=False,
    )
    return uvicorn.Server(config)
