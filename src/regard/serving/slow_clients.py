"""Connections that would stay for ever, closed: no request comes in whole, or no answer is read."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
READING_SECONDS = 30.0


class PatientProtocol(H11Protocol):
    """HTTP by h11, with a time limit for request line and headers, and one for a stuck answer."""

    _head_timer: asyncio.TimerHandle | None = None
    _reading_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a first request."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Read on; what has begun and is not complete has to become so in time."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_timer is None:
            self._wait_for_head()

    def pause_writing(self) -> None:
        """Hold the answer back, because what was sent has not been read; but not for ever."""
        super().pause_writing()
        # What is still to be sent is thrown away: a polite end would wait for it to be read.
        self._reading_timer = self.loop.call_later(READING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on with the answer."""
        super().resume_writing()
        self._stop_reading_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
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
