"""The server as a process: it listens, answers, and on a signal finishes what has begun."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

from regard.base.errors import SettingsError
from regard.serving.slow_clients import PatientProtocol

# Idle connections are kept open for the next request; longer than a proxy keeps its own.
KEEP_ALIVE_SECONDS = 75
BACKLOG = 1_024
CONNECTIONS = 2_000


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket at which clients wait from now on, or say why there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Where the protocol is not named, asyncio leaves Nagle's algorithm on, and the body of an
    # answer waits 40 ms until the client has acknowledged its head.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        # Two sockets that do not listen yet may share an address: whoever comes second would
        # only hear of it once its models are loaded.
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
    """Return a server that has not begun; `proxies` are trusted to say whom they speak for."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        access_log=False,  # it would write query strings; the guard writes a line of its own
        log_level="warning",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(drain_seconds),
        forwarded_allow_ips=proxies,
        backlog=BACKLOG,
        limit_concurrency=CONNECTIONS,
        server_header=False,
    )
    return uvicorn.Server(config)
