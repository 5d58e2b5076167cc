"""Corpora of any size: memory, time to the first update, resuming, and tokenising.

    python bench/stores.py --before DIR [--folder DIR] [--part NAME ...]

Generated pairs of two invented languages (60,000 words each, as frequent as Zipf says, 15 words a
sentence) are written as gzipped TSV shards: one million and ten million. `transformer-tiny` trains
on them in child processes.

first update: seconds from `regard.train` to the end of the first update on a million pairs, of the
    code in --before (a checkout of the code before stores) and of this one without a store.
memory: the most resident memory in the process of training from its first update on, on ten
    million pairs less on one million.
tokenizer: the most resident memory until the first update, on ten million pairs.
resume: seconds from `regard.train(resume=...)` to the end of the first update, on ten million.
tokenise: pairs a second of our phase, over those of SentencePiece alone, on texts that are in
    memory, in as many processes.
exact: 20 trainings on a mixture with sampled subwords, each killed at a random moment and resumed
    in a new process; how many end with the weights of one that was not killed, byte for byte.

Each part adds its figures to results/stores.json; parts that were measured before are kept.
"""

from __future__ import annotations

import gzip
import itertools
import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
SIZES = {"one": (1_000_000, 4), "ten": (10_000_000, 16)}
VOCABULARY, BLOCK = 60_000, 50_000
UPDATES = 40  # after the first one, during which memory is measured
KILLS = 20
PROCESSES = 2
MEGABYTE = 1 << 20


def write_corpus(folder: Path, name: str) -> list[Path]:
    """Write the generated pairs as shards, if they are not there yet."""
    pairs, shards = SIZES[name]
    paths = [folder / f"{name}.{shard:02}.tsv.gz" for shard in range(shards)]
    draw = random.Random(7)
    sources, targets = words(draw, ("", "s", "ed", "ing")), words(draw, ("", "en", "ung", "lich"))
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(VOCABULARY)))
    for path in paths:
        written = path.with_suffix(".writing")
        if path.exists():
            continue
        with gzip.open(written, "wt", compresslevel=1) as file:
            for first in range(0, pairs // shards, BLOCK):
                for _ in range(min(BLOCK, pairs // shards - first)):
                    count = max(2, min(60, int(draw.lognormvariate(2.6, 0.5))))
                    chosen = draw.choices(range(VOCABULARY), cum_weights=weights, k=count)
                    source, target = (
                        " ".join(side[i] for i in chosen) for side in (sources, targets)
                    )
                    file.write(f"{source}\t{target}\n")
        written.replace(path)
    return paths


def words(draw: random.Random, endings: Sequence[str]) -> list[str]:
    """Return invented words in random order."""
    syllables = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
    found: set[str] = set()
    while len(found) < VOCABULARY:
        stem = "".join(draw.choices(syllables, k=draw.choice((1, 2, 2, 3, 3, 4))))
        found.add(stem + draw.choice(endings))
    ordered = sorted(found)
    draw.shuffle(ordered)
    return ordered


class Watch:
    """A display and observer that notes when the first update ends, and memory from then on."""

    def __init__(self, updates: int):
        self.begun = time.perf_counter()
        self.updates = updates
        self.record: dict[str, Any] = {}
        self.phases: list[tuple[str, float]] = []
        self._count = 0

    @contextmanager
    def waiting(self, message: str) -> Iterator[None]:
        """Note a phase."""
        with self.translating(message):
            yield

    @contextmanager
    def translating(self, title: str = "Translating") -> Iterator[Watch]:
        """Note a phase."""
        began = time.perf_counter()
        yield self
        self.phases.append((title, round(time.perf_counter() - began, 1)))

    @contextmanager
    def training(self, *_: object, **__: object) -> Iterator[Watch]:
        """Observe the training."""
        yield self

    def moved(self, lines: int, share: float | None) -> None:
        """Nothing to note."""

    def note(self, line: str) -> None:
        """Show a line in the log."""
        print(line, file=sys.stderr, flush=True)

    noted = note

    def updated(self, *_: object) -> None:
        """Note the first update, and end the process after the last one."""
        self._count += 1
        if self._count == 1:
            self.record["first_update"] = time.perf_counter() - self.begun
            self.record["peak_before_mb"] = peak_memory()
            Path("/proc/self/clear_refs").write_text("5")  # begin the peak anew
        if self._count > self.updates:
            self.record |= {"training_mb": peak_memory(), "phases": self.phases}
            print(json.dumps(self.record), flush=True)
            for child in multiprocessing.active_children():
                child.kill()
            os._exit(0)

    def validated(self, *_: object) -> None:
        """Nothing to note."""

    finished = validated


def peak_memory() -> float:
    """Return the most resident memory of this process since it began, or was told to begin anew."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def child(options: dict[str, Any]) -> None:
    """Train until enough updates are observed: what a child process does."""
    import regard

    watch = Watch(options["updates"])
    changes = {
        "training.steps": 1_000_000,
        "training.validate_every": 1_000_000,
        "training.checkpoint_every": options.get("checkpoint_every", 1_000_000),
        "training.processes": 1,
        **options.get("set", {}),
    }
    out = Path(options["out"])
    if options.get("resume"):
        regard.train(resume=out, progress=watch)
    files = json.dumps(options["files"])
    given = [f"data.train={files}", *(f"{name}={json.dumps(v)}" for name, v in changes.items())]
    regard.train("transformer-tiny", out=out, set=given, progress=watch)


def run_child(package: Path, options: dict[str, Any], *, cache: Path) -> dict[str, Any]:
    """Return what a child found with the code of this package."""
    environment = os.environ | {
        "PYTHONPATH": str(package / "src"),
        "OMP_NUM_THREADS": "1",
        "REGARD_CACHE": str(cache),
    }
    command = [sys.executable, str(HERE), "--child", json.dumps(options)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{package}: a child failed")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__" and sys.argv[1:2] == ["--child"]:
    child(json.loads(sys.argv[2]))
