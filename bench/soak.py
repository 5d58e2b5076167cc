"""A server under mixed load with faults: no wrong answer, flat memory, health within a second.

    python bench/soak.py RUN [--minutes 30] [--pair en-de] [--nice -5]

Over loopback, clients ask for translations, for attention and for streams, and compare every answer
with the offline one. Meanwhile others send their bodies slowly, hang up in the middle, send damaged
bodies (those of `fuzz.py`) or wrong keys. The server is killed once (SIGKILL) and stopped once
(SIGTERM) in the first quarter of the time, and started again as a supervisor would. Its health is
asked for ten times a second and its memory sampled; both leave out the seconds of the restarts.
Writes results/soak.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import fuzz_inputs
from regard.engines.choice import choose_engine
from regard.serving.languages import pair_of, read_pair
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.model import load
from result import write_result
from serving import each_minute, memory_mb, offline, percentile, request_body, slope

CLIENTS = {"translate": 8, "attend": 3, "stream": 2, "slow": 4, "hang_up": 3, "damaged": 3}
HEALTH_SECONDS = 0.1
SAVE_MINUTES = 4.0
KINDS = {"json": "application/json", "form": "application/x-www-form-urlencoded",
         "multipart": "multipart/form-data; boundary=x"}  # fmt: skip


@dataclass
class Seen:
    """What all clients found."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    server_errors: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    """Answers that did not come, the restarts left out."""
    memory: list[tuple[float, float]] = field(default_factory=list)


class SoakedServer:
    """A server process, begun anew when it was ended."""

    def __init__(self, run: Path, pair: str, *, first: Sequence[str] = ()):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        program = "from regard.cli.app import main; main()"
        self._command = [*first, sys.executable, "-c", program, "serve", str(run), "--pair", pair,
                         "--port", str(self.port)]  # fmt: skip
        self.ready = False
        self.restarts = 0
        self.outages: list[tuple[float, float]] = []
        self.process = self._begun()

    def _begun(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdout=subprocess.DEVNULL)

    async def wait(self) -> None:
        """Wait until the server answers; it listens before it has loaded its models."""
        answer = b""
        while b" 200 " not in answer[:20]:
            await asyncio.sleep(0.2)
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(_head("/health", 0, "x", "GET"))
                answer = await reader.read()
                writer.close()
        self.ready = True

    async def restart(self, how: signal.Signals) -> None:
        """End the server, and begin it anew."""
        self.ready = False
        begun = time.monotonic()
        self.process.send_signal(how)
        await asyncio.to_thread(self.process.wait, 60)
        self.restarts += 1
        self.process = self._begun()
        await self.wait()
        self.outages.append((begun, time.monotonic()))

    def end(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait(60)


class Soak:
    """The clients; each method does one kind of thing once."""

    def __init__(self, server: SoakedServer, pair: str, expected: dict[str, str]):
        self._server = server
        self._pair = read_pair(pair)
        self._expected = expected
        self._texts = list(expected)
        self.seen = Seen()

    async def exchange(
        self, path: str, body: bytes, kind: str = "application/json", *, method: str = "POST"
    ) -> tuple[int, bytes]:
        """Send one request on a connection of its own; return status and body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        try:
            writer.write(_head(path, len(body), kind, method) + body)
            answer = await asyncio.wait_for(reader.read(), 60)
        finally:
            writer.close()
        head, _, rest = answer.partition(b"\r\n\r\n")
        return (int(head.split(b" ", 2)[1]) if head else 0), rest

    async def translate(self, random: Random) -> None:
        """Ask for a translation."""
        text = random.choice(self._texts)
        status, body = await self.exchange("/translate", request_body(text, self._pair))
        self._judge("translate", status, lambda: json.loads(body)["translatedText"], text)

    async def attend(self, random: Random) -> None:
        """Ask for attention."""
        text = random.choice(self._texts)
        status, body = await self.exchange("/attend", json.dumps({"q": text}).encode())
        self._judge("attend", status, lambda: json.loads(body)["text"], text)

    async def stream(self, random: Random) -> None:
        """Ask for a stream, and read it to its end."""
        text = random.choice(self._texts)
        status, body = await self.exchange("/stream", json.dumps({"q": text}).encode())

        def last() -> str:
            done = body.decode().partition("event: done")[2].partition("data: ")[2]
            return str(json.loads(done.partition("\n")[0])["text"])

        if b"event: error" in body:
            self.seen.answers["refused"] += 1
        else:
            self._judge("stream", status, last, text)

    async def slow(self, random: Random) -> None:
        """Send a body byte by byte, and give up some time."""
        _, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        body = request_body(random.choice(self._texts), self._pair)
        writer.write(_head("/translate", len(body), "application/json", "POST"))
        with suppress(OSError):  # the server gives up after a while
            for place in range(random.randrange(1, 15)):
                writer.write(body[place : place + 1])
                await writer.drain()
                await asyncio.sleep(random.random())
        writer.close()
        self.seen.answers["slow"] += 1

    async def hang_up(self, random: Random) -> None:
        """Ask for something and go away before the answer."""
        _, writer = await asyncio.open_connection("127.0.0.1", self._server.port)
        body = json.dumps({"q": random.choice(self._texts)}).encode()
        writer.write(_head(random.choice(("/attend", "/stream")), len(body), "x", "POST") + body)
        await writer.drain()
        await asyncio.sleep(0.05 * random.random())
        writer.transport.abort()
        self.seen.answers["hung_up"] += 1
        await asyncio.sleep(0.2)

    async def damaged(self, random: Random) -> None:
        """Send a damaged body, or a request that no route is for."""
        kind = random.choice(list(KINDS))
        body = fuzz_inputs.text_input(f"http-{kind}", random)
        path = random.choice(("/translate", "/detect", "/attend", "/nothing", "/static/../x"))
        with suppress(OSError, IndexError):  # a server that refuses a body need not read it all
            status, _ = await self.exchange(path, body, KINDS[kind])
            self._count("damaged", status)
        await asyncio.sleep(0.05)

    def _judge(self, kind: str, status: int, answer: Callable[[], str], text: str) -> None:
        if status == 200:
            try:
                found = answer()
            except (ValueError, KeyError):
                raise EOFError("half an answer") from None
            self.seen.answers[kind] += 1
            self.seen.wrong += found != self._expected[text]
        else:
            self._count("refused" if status in (429, 503) else "errors", status)

    def _count(self, kind: str, status: int) -> None:
        self.seen.answers[kind] += 1
        self.seen.server_errors += status == 500

    async def repeat(self, name: str, work: Callable[[], Awaitable[None]], end: float) -> None:
        """Do something again and again; what a restart breaks is not counted as lost."""
        while time.monotonic() < end:
            restarts = self._server.restarts
            try:
                await work()
            except (OSError, EOFError, TimeoutError, IndexError):
                if self._server.ready and self._server.restarts == restarts:
                    self.seen.lost[name] += 1
                await asyncio.sleep(0.2)


def _head(path: str, length: int, kind: str, method: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Type: {kind}",
             f"Content-Length: {length}"]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode()


class HealthProbe:
    """A process of its own that asks for the health, so that it does not measure the clients."""

    def __init__(self, server: SoakedServer, *, first: Sequence[str] = ()):
        self._server = server
        command = [*first, sys.executable, __file__, "--health", str(server.port)]
        # Appended to, so that reading what is there does not move the place of the next line.
        self._said = tempfile.TemporaryFile("a+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(command, stdout=self._said)

    def end(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()

    def seconds(self) -> list[float]:
        """Return the seconds of all answers so far, those during restarts left out."""
        self._said.seek(0)
        lines = [line.split() for line in self._said.read().split("\n")[:-1]]  # whole lines
        asked = [(float(line[0]), float(line[1])) for line in lines]
        outages = self._server.outages
        return [
            seconds
            for start, seconds in asked
            if not any(start + seconds > begun and start < end for begun, end in outages)
        ]


def ask_for_health(port: int) -> None:
    """Ask ten times a second, and print when and how long each answer took."""
    while True:
        start = time.monotonic()
        answer = b""
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 60) as connection:
            connection.sendall(_head("/health", 0, "x", "GET"))
            while part := connection.recv(4_096):
                answer += part
        seconds = time.monotonic() - start if b" 200 " in answer[:20] else 60.0
        print(start, seconds, flush=True)
        time.sleep(HEALTH_SECONDS)


async def soak(
    server: SoakedServer, clients: Soak, minutes: float, save: Callable[[float], None]
) -> None:
    """Let all clients work for some minutes; save what they found now and then, and at the end."""
    start = time.monotonic()
    end = start + 60 * minutes

    async def every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        await work()
        await asyncio.sleep(seconds)

    async def sample() -> None:
        if server.ready:
            clients.seen.memory.append(
                ((time.monotonic() - start) / 60, memory_mb(server.process.pid))
            )

    async def end_twice() -> None:
        for how in (signal.SIGKILL, signal.SIGTERM):
            await asyncio.sleep(60 * minutes / 10)
            await server.restart(how)

    async def save_often() -> None:
        while time.monotonic() < end:
            await asyncio.sleep(min(60 * SAVE_MINUTES, max(0.0, end - time.monotonic())))
            save((time.monotonic() - start) / 60)

    def client(name: str, number: int) -> Awaitable[None]:
        random = Random(f"{name} {number}")
        return clients.repeat(name, lambda: getattr(clients, name)(random), end)

    await asyncio.gather(
        end_twice(),
        save_often(),
        clients.repeat("memory", lambda: every(min(2.0, minutes), sample), end),
        *(client(name, n) for name, count in CLIENTS.items() for n in range(count)),
    )


def main() -> None:
    """Soak a server, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("run", type=Path, nargs="?")
    options.add_argument("--health", type=int, help=argparse.SUPPRESS)
    options.add_argument("--pair", help="languages, where the run does not tell them")
    options.add_argument("--minutes", type=float, default=30.0)
    options.add_argument(
        "--nice",
        type=int,
        default=0,
        help="of the server and its probe: on a "
        "machine with other work, which would slow down all alike",
    )
    options.add_argument("--sentences", type=int, default=200, help="different sentences asked for")
    given = options.parse_args()
    if given.health is not None:
        ask_for_health(given.health)
    translator = load(given.run)
    data = translator.recipe.data
    pair = given.pair or str(pair_of(data))
    translator.engine = choose_engine(translator, folder=given.run)
    one = data.grammar.model_copy(update={"size": 1, "valid_size": 1})
    test = read_splits(data.model_copy(update={"grammar": one})).test
    expected = offline(translator, [pair.source for pair in test], given.sentences)
    first = ["nice", "-n", str(given.nice)] if given.nice else []
    server = SoakedServer(given.run, pair, first=first)
    clients = Soak(server, pair, expected)
    asyncio.run(server.wait())
    probe = HealthProbe(server, first=first)
    facts = {
        "engine": translator.engine.name,
        "title": translator.recipe.title,
        "clients": CLIENTS,
        "nice": given.nice,
    }

    def save(minutes: float) -> None:
        save_result(clients.seen, probe.seconds(), minutes, restarts=server.restarts, facts=facts)

    try:
        asyncio.run(soak(server, clients, given.minutes, save))
    finally:
        probe.end()
        server.end()


def save_result(
    seen: Seen, health: list[float], minutes: float, *, restarts: int, facts: Mapping[str, object]
) -> None:
    """Write the result file."""
    settled = [one for one in seen.memory if one[0] > minutes / 4]
    figures = {
        "minutes": round(minutes, 1),
        "answers": sum(seen.answers[kind] for kind in ("translate", "attend", "stream")),
        "wrong": seen.wrong,
        "lost": sum(seen.lost.values()),
        "server_errors": seen.server_errors,
        "restarts": restarts,
        "memory_slope_mb_per_min": round(slope(settled, after=0.0), 3),
        "memory_mb": round(settled[-1][1], 1) if settled else 0.0,
        "health_asked": len(health),
        "health_p99_ms": round(percentile(health, 99), 1),
        "health_p100_ms": round(1_000 * max(health, default=0.0), 1),
    }
    found = {"requests": dict(seen.answers), "lost": dict(seen.lost)}
    write_result(
        "soak",
        figures,
        command=f"python bench/soak.py RUN --minutes {minutes:.0f}",
        packages=("fastapi", "starlette", "uvicorn", "python-multipart", "ctranslate2"),
        details={**facts, **found, "memory_each_minute": each_minute(seen.memory)},
    )


if __name__ == "__main__":
    main()
