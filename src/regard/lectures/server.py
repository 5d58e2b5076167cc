"""A server of the guide for one reader on this machine: pages, and figures as sliders move.

It listens at the loopback address alone, answers GET only, reads no file that a request names, and
refuses requests that another site's page has led here (DNS rebinding) by their Host.
"""

from __future__ import annotations

import json
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qsl, urlsplit

from regard.base.errors import RegardError, SettingsError
from regard.lectures.blocks import inline_picture
from regard.lectures.figures import Figures
from regard.lectures.guide import FRONT, PAGES
from regard.lectures.local import local_page

LOOPBACK = "127.0.0.1"
NUMBERS = 12  # most numbers of a request
LONGEST = 4_000  # characters of a request


class LectureServer(ThreadingHTTPServer):
    """Serves the guide; `figures` draws, one figure at a time."""

    daemon_threads = True

    def __init__(self, figures: Figures, *, port: int = 0):
        self.figures = figures
        self.turn = Lock()
        try:
            super().__init__((LOOPBACK, port), partial(LectureRequest))
        except OSError as error:
            raise SettingsError(
                f"Cannot listen at {LOOPBACK}, port {port}: {error.strerror or error}. Choose "
                "another with --port, or 0 for any that is free."
            ) from error

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://{LOOPBACK}:{self.server_address[1]}"

    def page(self, name: str) -> str:
        """Return a page of the guide."""
        with self.turn:
            return local_page(name, self.figures, live=True)

    def figure(self, name: str, query: str) -> dict[str, str]:
        """Return a figure as the query wants it, with its command, or the problem."""
        numbers = dict(parse_qsl(query, max_num_fields=NUMBERS))
        sentence = numbers.pop("sentence", None)
        with self.turn:
            svg = self.figures.svg(name, numbers, sentence=sentence)
            command = self.figures.command(name, numbers, sentence=sentence)
        return {
            "svg": inline_picture(svg, name=name, numbers=numbers, prefix=f"live-{name}-"),
            "command": command,
        }


class LectureRequest(BaseHTTPRequestHandler):
    """Answers one request."""

    server: LectureServer
    server_version, sys_version = "regard", ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer with a page, or a figure as JSON."""
        port = self.server.server_address[1]
        if self.headers.get("Host") not in (f"{LOOPBACK}:{port}", f"localhost:{port}"):
            self._answer(403, "text/plain", "This page is for this machine alone.")
            return
        if len(self.path) > LONGEST:
            self._answer(414, "text/plain", "The address is too long.")
            return
        asked = urlsplit(self.path)
        kind, _, name = asked.path.strip("/").partition("/")
        if kind == "figure":
            self._figure(name, asked.query)
        elif not name and (kind or FRONT) in PAGES:
            self._answer(200, "text/html", self.server.page(kind or FRONT))
        else:
            self._answer(404, "text/plain", "There is no such page.")

    def _figure(self, name: str, query: str) -> None:
        try:
            found = self.server.figure(name, query)
        except (RegardError, ValueError) as error:
            self._answer(400, "application/json", json.dumps({"problem": str(error)}))
            return
        self._answer(200, "application/json", json.dumps(found))

    def _answer(self, status: int, kind: str, text: str) -> None:
        content = text.encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests."""
