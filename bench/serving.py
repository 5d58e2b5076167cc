"""The server under load: batches compared with one request at a time, and minutes of overload.

    python bench/serving.py RUN [--seconds 10] [--rounds 3] [--overload-minutes 10]

RUN is a trained Transformer-tiny; the sentences are those of its test set. Two servers in processes
of their own, one with batching and one without, get requests over loopback from 1, 8 and 64 clients
in turn; each round measures both, so that both see the same state of the machine. Then a server
with a short queue gets requests from far more clients than it can serve, while its memory is
measured. Every answer is compared with the offline translation. Writes results/serving.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from regard.engines.choice import choose_engine
from regard.serving.languages import Pair, pair_of, read_pair
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.model import LoadedTranslator, load
from regard.text.sentences import split_sentences
from result import write_result

CLIENTS = (1, 8, 64)
OVERLOAD_CLIENTS, OVERLOAD_QUEUE = 256, 64
# A client that was refused comes back sooner than it was told to: that is what makes it overload.
BACK_SECONDS = 0.1
SAMPLE_SECONDS = 2.0


@dataclass
class Asked:
    """What clients found: latencies in seconds of right answers, and everything else counted."""

    latencies: list[float] = field(default_factory=list)
    in_time: int = 0
    """Right answers that came before the time was over; speeds count no others."""
    wrong: int = 0
    lost: int = 0
    busy: int = 0


class Connection:
    """A client that keeps its connection open and does as little as possible."""

    def __init__(self, port: int):
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Ask for a translation, and return status and body."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.partition(b"content-length:")[2].partition(b"\r\n")[0])
        return int(answer.split(b" ", 2)[1]), await reader.readexactly(length)

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def main() -> None:
    """Measure, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("run", type=Path)
    options.add_argument("--pair", help="languages, where the run does not tell them")
    options.add_argument("--sentences", type=int, default=400, help="different sentences asked for")
    options.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--overload-minutes", type=float, default=10.0)
    given = options.parse_args()
    translator = load(given.run)
    data = translator.recipe.data
    languages = read_pair(given.pair) if given.pair else pair_of(data)
    translator.engine = choose_engine(translator, folder=given.run, report=print)
    one = data.grammar.model_copy(update={"size": 1, "valid_size": 1})  # only the test part counts
    test = read_splits(data.model_copy(update={"grammar": one})).test
    expected = offline(translator, [pair.source for pair in test], given.sentences)
    bodies = {text: request_body(text, languages) for text in expected}
    figures, total = compare(given, languages, expected, bodies)
    overload, memory = overloaded(given, languages, expected, bodies)
    figures |= {
        "wrong_answers": total.wrong + overload.wrong,
        "lost_answers": total.lost + overload.lost,
        "overload_minutes": given.overload_minutes,
        "overload_answers": len(overload.latencies),
        "overload_refused": overload.busy,
        "overload_p95_ms": percentile(overload.latencies, 95),
        "memory_slope_mb_per_min": slope(memory, after=0.2),
        "memory_slope_mb_per_min_second_half": slope(memory, after=0.5),
        "memory_mb": memory[-1][1] if memory else 0.0,
    }
    path = write_result(
        "serving",
        {name: round(value, 3) for name, value in figures.items()},
        command=" ".join(["python bench/serving.py RUN", *sys.argv[2:]]),
        packages=("fastapi", "starlette", "uvicorn", "ctranslate2"),
        details={"engine": translator.engine.name, "title": translator.recipe.title,
               "sentences": len(expected), "seconds": given.seconds, "rounds": given.rounds,
               "overload_clients": OVERLOAD_CLIENTS, "overload_queue": OVERLOAD_QUEUE,
               "memory_mb_each_minute": each_minute(memory)},
    )  # fmt: skip
    print(path.read_text(encoding="utf-8"))


def offline(translator: LoadedTranslator, texts: list[str], most: int) -> dict[str, str]:
    """Return sentences with the translations that they should be answered with."""
    single = [text for text in dict.fromkeys(texts) if len(split_sentences(text)) == 1][:most]
    found = translator.translate(single, attention=False)
    return {text: one.text for text, one in zip(single, found, strict=True)}


def request_body(text: str, pair: Pair) -> bytes:
    """Return what a client sends."""
    asked = {"q": text, "source": pair.source, "target": pair.target}
    return json.dumps(asked, ensure_ascii=False).encode()


def compare(
    given: argparse.Namespace, pair: Pair, expected: dict[str, str], bodies: dict[str, bytes]
) -> tuple[dict[str, float], Asked]:
    """Return the figures of both servers, asked in turn."""
    figures: dict[str, float] = {}
    total = Asked()
    with (
        serving(given.run, pair) as (together, _),
        serving(given.run, pair, "--one-at-a-time") as (alone, _),
    ):
        for clients in CLIENTS:
            found: dict[str, list[Asked]] = {"": [], "_one_at_a_time": []}
            for _ in range(given.rounds):
                for name, port in (("", together), ("_one_at_a_time", alone)):
                    one = asyncio.run(ask(port, expected, bodies, clients, seconds=given.seconds))
                    found[name].append(one)
                    print(f"{clients} clients{name}: {one.in_time / given.seconds:.0f}/s")
            for name, rounds in found.items():
                latencies = [value for one in rounds for value in one.latencies]
                speeds = [one.in_time / given.seconds for one in rounds]
                figures[f"requests_per_second_{clients}{name}"] = statistics.median(speeds)
                figures[f"p50_ms_{clients}{name}"] = percentile(latencies, 50)
                figures[f"p95_ms_{clients}{name}"] = percentile(latencies, 95)
                total.wrong += sum(one.wrong for one in rounds)
                total.lost += sum(one.lost + one.busy for one in rounds)
            pairs = zip(*found.values(), strict=True)
            gains = [both[0].in_time / max(1, both[1].in_time) for both in pairs]
            figures[f"batching_gain_{clients}"] = statistics.median(gains)
    return figures, total


def overloaded(
    given: argparse.Namespace, pair: Pair, expected: dict[str, str], bodies: dict[str, bytes]
) -> tuple[Asked, list[tuple[float, float]]]:
    """Ask a server for too much; return the answers, and its memory in MB at minutes."""
    seconds = 60 * given.overload_minutes
    samples: list[tuple[float, float]] = []
    with serving(given.run, pair, "--queue", str(OVERLOAD_QUEUE)) as (port, process):
        start = time.monotonic()

        def watch() -> None:
            samples.append(((time.monotonic() - start) / 60, memory_mb(process.pid)))

        asked = ask(port, expected, bodies, OVERLOAD_CLIENTS, seconds=seconds, watch=watch)
        return asyncio.run(asked), samples


def slope(samples: list[tuple[float, float]], *, after: float) -> float:
    """Return how memory grows a minute after this share of the time: the beginning fills caches."""
    settled = samples[int(after * len(samples)) :]
    if len(settled) < 2:
        return 0.0
    return statistics.linear_regression(*zip(*settled, strict=True)).slope


def each_minute(samples: list[tuple[float, float]]) -> list[float]:
    """Return the last memory in each minute."""
    return [round(mb, 1) for mb in {int(minutes): mb for minutes, mb in samples}.values()]


async def ask(
    port: int,
    expected: dict[str, str],
    bodies: dict[str, bytes],
    clients: int,
    *,
    seconds: float,
    watch: Callable[[], None] | None = None,
) -> Asked:
    """Let clients ask one sentence after the other until the time is over."""
    found = Asked()
    texts = list(expected)
    end = time.monotonic() + seconds

    async def client(number: int) -> None:
        connection = Connection(port)
        place = number * 7_919  # clients should not ask for the same at the same time
        while time.monotonic() < end:
            text = texts[place % len(texts)]
            place += 1
            start = time.monotonic()
            try:
                status, body = await connection.post(bodies[text])
            except (OSError, EOFError):
                found.lost += 1
                connection.close()
                continue
            if status == 429:
                found.busy += 1
                await asyncio.sleep(BACK_SECONDS)
            elif status != 200:
                found.lost += 1
            elif json.loads(body)["translatedText"] != expected[text]:
                found.wrong += 1
            else:
                found.latencies.append(time.monotonic() - start)
                found.in_time += time.monotonic() < end
        connection.close()

    async def look() -> None:
        while watch is not None and time.monotonic() < end:
            watch()
            await asyncio.sleep(min(SAMPLE_SECONDS, seconds / 10))

    await asyncio.gather(look(), *(client(number) for number in range(clients)))
    return found


@contextmanager
def serving(run: Path, pair: Pair, *options: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run a server in a process of its own, and yield its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    program = "from regard.cli.app import main; main()"
    command = ["serve", str(run), "--pair", f"{pair.source}:{pair.target}", "--port", str(port)]
    process = subprocess.Popen([sys.executable, "-c", program, *command, *options])
    try:
        while True:
            if process.poll() is not None:
                raise SystemExit("The server ended before it began.")
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.2)
        yield port, process
    finally:
        process.terminate()
        process.wait(60)


def memory_mb(process: int) -> float:
    """Return the memory that a process holds."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1_024
    return 0.0


def percentile(seconds: list[float], share: int) -> float:
    """Return milliseconds that this share of all did not exceed."""
    if len(seconds) < 2:
        return 1_000 * sum(seconds)
    return 1_000 * statistics.quantiles(seconds, n=100, method="inclusive")[share - 1]


if __name__ == "__main__":
    main()
