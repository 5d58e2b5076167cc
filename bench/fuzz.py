"""Fuzzing: every reader, every file of a run, recipes and HTTP bodies, with limits for each input.

    python bench/fuzz.py [--inputs 1000000] [--minutes 60] [--seed 1] [--fresh]
    python bench/fuzz.py --only TARGET --number N    # one input again, with its traceback

Inputs are mutations of valid files and files made of the parts of a format (`fuzz_inputs.py`). A
child process reads them (`fuzz_targets.py`) with a limit on its memory and on the seconds of each
input; one that hangs is ended and begun anew behind the input. Every input follows from seed,
target and number, so a second call goes on where the first one stopped, after trying the failures
on record again. Writes results/fuzz.json: `inputs` tried, `failures` that are left, and
`failures_found`, mended ones included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import fuzz_targets as targets
from fuzz_foreign import foreign_targets
from result import read_result, write_result

INPUT_SECONDS = 10
HANG_SECONDS = 240  # by the clock: other work may leave little of the machine
MEMORY_BYTES = 1_500 << 20  # beyond what the libraries take
SHOWN_FAILURES = 100
NUMBER = struct.Struct("<q")


class TooLongError(Exception):
    """An input took longer than `INPUT_SECONDS`."""


def main() -> None:
    """Fuzz, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--inputs", type=int, default=1_000_000)
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--fresh", action="store_true", help="forget what was tried before")
    options.add_argument("--only", help="name of one target")
    options.add_argument("--number", type=int, help="number of one input")
    options.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_memory_folder()) as folder:
        if given.child is not None:
            child(given.child, given.seed, Path(folder))
        elif given.number is not None:
            again(given, Path(folder))
        else:
            fuzz(given, Path(folder))


def _memory_folder() -> str | None:
    """Return a folder in memory, where there is one: inputs are files that live for a moment."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def again(given: argparse.Namespace, folder: Path) -> None:
    """Try one input, with its traceback."""
    runs = targets.train_runs(folder / "runs")
    with targets.http_targets(runs["attention"]) as http:
        every = [*targets.reader_targets(), *targets.run_targets(runs),
                 *foreign_targets(folder / "foreign-models"), *http]  # fmt: skip
        target = next(one for one in every if one.name == given.only)
        targets.try_input(target, given.number, seed=given.seed, folder=folder)
    print("fine")


def fuzz(given: argparse.Namespace, folder: Path) -> None:
    """Try inputs of all targets in turn until there are enough or the time is over."""
    record = {} if given.fresh else read_result("fuzz").get("details", {})
    done: dict[str, int] = dict(record.get("inputs", {}))
    known: dict[str, str] = dict(record.get("failures", {}))
    found = int(record.get("failures_found", 0))
    reader = Child(given.seed, folder)
    failures: dict[str, str] = {}
    for place in known:  # may have been mended since
        name, _, number = place.rpartition(" ")
        failures |= reader.read(name, int(number), int(number) + 1)
    print(f"{len(known) - len(failures)} of {len(known)} known failures are mended.")
    start, last = time.monotonic(), 0.0
    names = [(name, chunk) for name, chunk in reader.targets if given.only in (None, name)]
    while sum(done.values()) < given.inputs and time.monotonic() - start < 60 * given.minutes:
        fewest = min(done.get(name, 0) // chunk for name, chunk in names)
        for name, chunk in names:
            if done.get(name, 0) // chunk > fewest:  # targets that came later catch up first
                continue
            first = done.get(name, 0)
            new = reader.read(name, first, first + chunk)
            found += len(new.keys() - known.keys())
            failures |= new
            done[name] = first + chunk
            for place, problem in new.items():
                print(f"{place}: {problem}", flush=True)
        if time.monotonic() - last > 30:
            last = time.monotonic()
            print(f"{sum(done.values()):,} inputs, {len(failures)} failures", flush=True)
            save(given, done, failures, found)
    reader.end()
    save(given, done, failures, found)


def save(
    given: argparse.Namespace, done: dict[str, int], failures: dict[str, str], found: int
) -> None:
    """Write the result file."""
    figures = {"inputs": sum(done.values()), "failures": len(failures), "failures_found": found}
    write_result(
        "fuzz",
        figures,
        command=f"python bench/fuzz.py --inputs {given.inputs} --seed {given.seed}",
        details={"inputs": done, "failures": dict(list(failures.items())[:SHOWN_FAILURES]),
                 "failures_found": found, "input_seconds": INPUT_SECONDS,
                 "memory_mb": MEMORY_BYTES >> 20},
    )  # fmt: skip


class Child:
    """A process that reads inputs; it is begun anew when it hangs or dies."""

    def __init__(self, seed: int, folder: Path):
        self._seed = seed
        self._place = folder / "number"
        self._place.write_bytes(NUMBER.pack(-1))
        self.targets: list[tuple[str, int]] = []
        self._begin()

    def _begin(self) -> None:
        command = [sys.executable, __file__, "--child", str(self._place), "--seed", str(self._seed)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.targets = self._answer(600)["targets"]

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def read(self, name: str, first: int, last: int) -> dict[str, str]:
        """Read inputs of a target; return the failures by target and number."""
        failures: dict[str, str] = {}
        while first < last:
            self._send([name, first, last])
            answer = self._answer(HANG_SECONDS)
            failures |= answer.get("failures", {})
            if "done" in answer:
                break
            number = NUMBER.unpack(self._place.read_bytes())[0]
            ended = self._process.poll()
            problem = "the process hung" if ended is None else f"the process ended with {ended}"
            failures[f"{name} {number}"] = problem
            self.end()
            self._begin()
            first = number + 1
        return failures

    def _send(self, value: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value).encode() + b"\n")
        self._process.stdin.flush()

    def _answer(self, seconds: float) -> dict[str, Any]:
        """Return an answer; an empty one if nothing has moved for this time."""
        assert self._process.stdout is not None
        before, since = b"", time.monotonic()
        while time.monotonic() - since < seconds and self._process.poll() is None:
            if select.select([self._process.stdout], [], [], 1.0)[0]:
                line = self._process.stdout.readline()
                return dict(json.loads(line)) if line else {}
            now = self._place.read_bytes()
            if now != before:
                before, since = now, time.monotonic()
        return {}


def child(place: Path, seed: int, folder: Path) -> None:
    """Read the inputs that the parent asks for, and answer with their failures."""
    runs = targets.train_runs(place.parent / "runs")
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print goes elsewhere
    signal.signal(signal.SIGPROF, _too_long)  # by the time that the process has worked
    with targets.http_targets(runs["attention"]) as http:
        foreign = foreign_targets(place.parent / "foreign-models")
        found = (*targets.reader_targets(), *targets.run_targets(runs), *foreign, *http)
        every = {one.name: one for one in found}
        for target in every.values():  # libraries are imported before the memory is limited
            _failure(target, -1, seed, folder)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES,) * 2)
        _write(answers, {"targets": [(one.name, one.chunk) for one in every.values()]})
        with place.open("r+b", buffering=0) as number_file:
            for line in sys.stdin:
                name, first, last = json.loads(line)
                failures = {}
                for number in range(first, last):
                    number_file.seek(0)
                    number_file.write(NUMBER.pack(number))
                    if problem := _failure(every[name], number, seed, folder):
                        failures[f"{name} {number}"] = problem
                _write(answers, {"done": last, "failures": failures})


def _write(answers: int, value: Any) -> None:
    os.write(answers, json.dumps(value).encode() + b"\n")


def _failure(target: targets.FuzzTarget, number: int, seed: int, folder: Path) -> str:
    """Return what went wrong with an input; empty if nothing did."""
    signal.setitimer(signal.ITIMER_PROF, INPUT_SECONDS)
    try:
        targets.try_input(target, number, seed=seed, folder=folder)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "/regard/" in frame.filename] or frames
        where = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        return f"{type(error).__name__} at {where}: {str(error)[:120]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def _too_long(*_: object) -> None:
    raise TooLongError(f"more than {INPUT_SECONDS} seconds")


if __name__ == "__main__":
    main()
