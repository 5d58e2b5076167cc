"""Corpora of any size: memory, time to the first update, resuming, and tokenising.

    python bench/stores.py --before DIR [--folder DIR] [--part NAME ...]

Generated pairs of two invented languages (60,000 words each, as frequent as Zipf says, 15 words a
sentence) are written as gzipped TSV shards. `transformer-tiny` trains on them in child processes,
which note wall-clock and processor seconds (their helpers' included).

one: one million pairs, without a store: seconds from `regard.train` to the end of the first
    update, and the most resident memory until then (`tokenizer_peak_mb`).
ten: stores of ten million pairs, which are those of part one ten times over: to read and tokenise
    as many would show nothing else. The most resident memory from the first update on, less that
    of a process that goes on with one million (`memory_growth_mb`), and seconds from
    `regard.train(resume=...)` to the first update.
before: seconds to the first update of the code in --before (a checkout of the code before stores),
    on 100,000 and 200,000 pairs. A straight line through both gives those of a million, where that
    code takes 7 GB and a quarter of an hour; its training of SentencePiece grows slightly faster
    than a straight line, so that the ratio is not flattered.
tokenise: pairs a second of our phase, over those of SentencePiece alone, on texts that are in
    memory, in as many processes.
exact: 20 trainings on a mixture with sampled subwords, each killed at a random moment and resumed
    in a new process; how many end with the weights of one that was not killed, byte for byte.

Each part adds its figures to results/stores.json; parts that were measured before are kept. The
peak at the end of a training is measured by bench/bounded.py and copied from its result.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from result import read_result, write_result

HERE = Path(__file__).resolve()
MILLION, SHARDS = 1_000_000, 4
BEFORE = (100_000, 200_000)
SIZES = {"one": MILLION, **{f"before-{size}": size for size in BEFORE}}
TIMES = 10
VOCABULARY, BLOCK = 60_000, 20_000
UPDATES = 40  # after the first one, during which memory is measured
KILLS = 20
PROCESSES = 2


def write_corpus(folder: Path, name: str) -> list[Path]:
    """Write the generated pairs as shards, if they are not there yet."""
    pairs, shards = SIZES[name], 1 if name.startswith("before") else SHARDS
    paths = [folder / f"{name}.{shard:02}.tsv.gz" for shard in range(shards)]
    draw = random.Random(7)
    sources, targets = words(draw, ("", "s", "ed", "ing")), words(draw, ("", "en", "ung", "lich"))
    shares = np.cumsum(1 / (np.arange(VOCABULARY) + 3))
    for number, path in enumerate(paths):
        written = path.with_suffix(".writing")
        if path.exists():
            continue
        numbers = np.random.default_rng([pairs, number])
        with gzip.open(written, "wt", compresslevel=1) as file:
            for first in range(0, pairs // shards, BLOCK):
                size = min(BLOCK, pairs // shards - first)
                counts = np.clip(numbers.lognormal(2.6, 0.5, size), 2, 60).astype(int)
                places = np.searchsorted(shares, numbers.random(counts.sum()) * shares[-1])
                chosen, end = places.tolist(), 0
                for count in counts.tolist():
                    sentence, end = chosen[end : end + count], end + count
                    source, target = (
                        " ".join([side[i] for i in sentence]) for side in (sources, targets)
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
            self.record["first_update_cpu"] = cpu_seconds()
            self.record["peak_before_mb"] = peak_memory()
            Path("/proc/self/clear_refs").write_text("5")  # begin the peak anew
        if self._count > self.updates:
            self.record |= {"training_mb": peak_memory(), "phases": self.phases}
            self.record["update_cpu"] = cpu_seconds() - self.record["first_update_cpu"]
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


def cpu_seconds() -> float:
    """Return the processor time of this process and of its helpers that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


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


def one(folder: Path) -> dict[str, float]:
    """Train on a million pairs that were never read before."""
    for path in (folder / "out-one", folder / "cache-one"):
        shutil.rmtree(path, ignore_errors=True)
    files = [str(path) for path in write_corpus(folder, "one")]
    options = {"files": files, "out": str(folder / "out-one"), "updates": UPDATES,
               "checkpoint_every": UPDATES // 2}  # fmt: skip
    found = run_child(HERE.parents[1], options, cache=folder / "cache-one")
    print(json.dumps(found), flush=True)
    return {
        "first_update_seconds": round(found["first_update"], 1),
        "first_update_cpu_seconds": round(found["first_update_cpu"], 1),
        "tokenizer_peak_mb": round(found["peak_before_mb"], 1),
    }


def ten(folder: Path) -> dict[str, float]:
    """Go on with a million pairs, train on ten million, and go on with these."""
    repeat(folder)

    def resumed(name: str, updates: int = UPDATES) -> dict[str, Any]:
        out, cache = folder / f"out-{name}", folder / f"cache-{name}"
        options = {"out": str(out), "updates": updates, "resume": True, "files": []}
        found = run_child(HERE.parents[1], options, cache=cache)
        print(name, json.dumps(found), flush=True)
        return found

    small, large, again = resumed("one"), resumed("ten"), resumed("ten", 1)
    return {
        "training_mb_one_million": round(small["training_mb"], 1),
        "training_mb_ten_million": round(large["training_mb"], 1),
        "memory_growth_mb": round(large["training_mb"] - small["training_mb"], 1),
        "resume_seconds": round(again["first_update"], 1),
        "resume_cpu_seconds": round(again["first_update_cpu"], 1),
    }


def repeat(folder: Path) -> None:
    """Write the run and the corpus of part one again, with their stores ten times over."""
    from regard.corpora.store import RowStore, RowWriter

    def write(source: Path, target: Path, **changes: Any) -> None:
        store = RowStore(source)
        shutil.rmtree(target)
        target.mkdir()
        values, lengths = (source / "values").read_bytes(), store.lengths().astype(np.int64)
        with RowWriter(target, columns=store.columns, width=store.width) as writer:
            for _ in range(TIMES):
                writer.add(values, lengths)
            writer.finish({**store.made_of, **changes})

    for name in ("out", "cache"):
        shutil.rmtree(folder / f"{name}-ten", ignore_errors=True)
        shutil.copytree(folder / f"{name}-one", folder / f"{name}-ten")
    shutil.rmtree(folder / "out-ten" / "checkpoints")
    for name in ("evidence.json", "metrics.jsonl"):  # which belong to the smaller corpus
        (folder / "out-ten" / name).unlink()
    (texts,) = (folder / "cache-one").glob("corpora/*/pairs")
    header = RowStore(texts)
    held = {
        part: [row + turn * len(header) for turn in range(TIMES) for row in rows]
        for part, rows in header.made_of["rows"].items()
    }
    digest = f"{TIMES} times {header.made_of['fingerprint']}"
    target = folder / "cache-ten" / texts.relative_to(folder / "cache-one")
    write(texts, target, rows=held, fingerprint=digest)
    tokens = Path("data") / "train"
    write(folder / "out-one" / tokens, folder / "out-ten" / tokens, corpus=digest)


def before(package: Path, folder: Path) -> dict[str, float]:
    """Measure the first update of the code before stores on two sizes."""
    figures = {}
    for size in BEFORE:
        (file,) = write_corpus(folder, f"before-{size}")
        out = folder / "out-before"
        shutil.rmtree(out, ignore_errors=True)
        options = {"files": [str(file)], "out": str(out), "updates": 1}
        found = run_child(package, options, cache=folder / "cache-before")
        print(size, json.dumps(found), flush=True)
        figures[f"before_first_update_seconds_{size}"] = round(found["first_update"], 1)
        figures[f"before_first_update_cpu_seconds_{size}"] = round(found["first_update_cpu"], 1)
        figures[f"before_peak_mb_{size}"] = round(found["peak_before_mb"], 1)
    return figures


def derived(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figures that follow from those of several parts."""
    found = dict(figures)
    for unit in ("seconds", "cpu_seconds"):
        name = f"before_first_update_{unit}"
        if {f"first_update_{unit}", f"{name}_{BEFORE[1]}"} <= found.keys():
            low, high = (found[f"{name}_{size}"] for size in BEFORE)
            steps = (MILLION - BEFORE[1]) / (BEFORE[1] - BEFORE[0])
            line = high + steps * (high - low)
            ratio = "first_update_ratio" + unit.removesuffix("seconds").replace("cpu_", "_cpu")
            found[f"{name}_line"] = round(line, 1)
            found[ratio] = round(found[f"first_update_{unit}"] / line, 3)
    end = read_result("bounded").get("figures", {}).get("training_end_peak_mb")
    return found if end is None else found | {"training_end_peak_mb": end}


def tokenise(folder: Path) -> dict[str, float]:
    """Compare our phase with SentencePiece alone, each on all processes."""
    import sentencepiece

    from regard.batching.tokenising import write_examples
    from regard.runs.run import Run
    from regard.tasks.translation.data import read_splits
    from regard.tasks.translation.settings import DataSettings

    os.environ["REGARD_CACHE"] = str(folder / "cache-one")
    files = tuple(str(path) for path in write_corpus(folder, "one"))
    pairs = read_splits(DataSettings(train=files)).train  # type: ignore[call-arg]
    run = Run.open(folder / "out-one")
    texts = [text for pair in pairs[:200_000] for text in (pair.source, pair.target)]
    processor = sentencepiece.SentencePieceProcessor(str(run.folder / "source.model"))
    began = time.perf_counter()
    workers = [
        multiprocessing.get_context("fork").Process(
            target=lambda part=part: [processor.encode(text) for text in part]
        )
        for part in (texts[number::PROCESSES] for number in range(PROCESSES))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    alone = len(texts) / 2 / (time.perf_counter() - began)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        began = time.perf_counter()
        write_examples(
            Path(temporary) / "train",
            pairs,  # type: ignore[arg-type]
            run.tokenizers(),
            made_of={"sizes": [one.size for one in run.tokenizers()]},
            watch=lambda rows, share: None,
            processes=PROCESSES,
        )
        ours = len(pairs) / (time.perf_counter() - began)
    return {
        "tokenise_pairs_per_second": round(ours),
        "sentencepiece_pairs_per_second": round(alone),
        "tokenise_ratio_vs_sentencepiece": round(ours / alone, 3),
    }


SMALL = {
    "training.steps": 60,
    "training.validate_every": 60,
    "training.checkpoint_every": 7,
    "training.processes": 1,
    "training.subword_sampling": 0.2,
    "augmentation.typos": 0.1,
    "model.layers": 1,
    "model.model_dim": 16,
    "model.heads": 2,
    "model.feed_forward": 16,
    "batches.tokens": 400,
    "data.weights": [1, 3],
    "tokenizer.size": 400,
}


def small_child(options: dict[str, Any]) -> None:
    """Train on a mixture in a store, or go on with it: what a killed child process does."""
    import regard
    from regard.corpora import store

    store.MOST_IN_MEMORY = 100
    out = Path(options["out"])
    if (out / "recipe.toml").exists():
        regard.train(resume=out, progress=False)
    else:
        regard.train("transformer-tiny", data=options["files"], out=out, set=SMALL, progress=False)


def exact(folder: Path) -> dict[str, float]:
    """Kill trainings at random moments, resume them, and compare the weights."""
    draw = random.Random(5)
    files = []
    for name, count in {"many": 3_000, "few": 500}.items():
        known = ("ba", "ko", "mi", "rudal", "fen", name)
        lines = [f"{' '.join(draw.choices(known, k=6))} {number}" for number in range(count)]
        files.append(folder / f"{name}.tsv")
        files[-1].write_text("".join(f"{line}\t{line[::-1]}\n" for line in lines))
    command = [sys.executable, str(HERE), "--small-child"]
    environment = os.environ | {"REGARD_CACHE": str(folder / "small-cache"), "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(HERE.parents[1] / "src")

    def start(out: Path) -> subprocess.Popen[bytes]:
        options = {"files": [str(path) for path in files], "out": str(out)}
        return subprocess.Popen([*command, json.dumps(options)], env=environment)

    def weights(out: Path) -> bytes:
        return (out / "best" / "model.safetensors").read_bytes()

    shutil.rmtree(folder / "small", ignore_errors=True)
    whole = [folder / "small" / name for name in ("whole", "again")]
    began = time.perf_counter()
    if any(start(out).wait() for out in whole):
        raise SystemExit("a training failed")
    seconds = (time.perf_counter() - began) / 2
    right = 0
    for number in range(KILLS):
        out = folder / "small" / str(number)
        child = start(out)
        try:
            child.wait(timeout=draw.uniform(0.2, 0.8) * seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if start(out).wait():
            continue
        right += weights(out) == weights(whole[0])
    return {
        "exact_resumes": right,
        "kills": KILLS,
        "same_seed_same_bytes": int(weights(whole[0]) == weights(whole[1])),
    }


def main() -> None:
    """Measure the parts that are asked for and add them to the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="checkout of the code before stores")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "stores")
    parts: dict[str, Callable[[], dict[str, float]]] = {
        "one": lambda: one(given.folder),
        "ten": lambda: ten(given.folder),
        "before": lambda: before(given.before, given.folder),
        "tokenise": lambda: tokenise(given.folder),
        "exact": lambda: exact(given.folder),
    }
    parser.add_argument("--part", nargs="+", default=[*parts], choices=[*parts], metavar="NAME")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if "before" in given.part and given.before is None:
        parser.error("the part before needs --before")
    for part in given.part:
        figures = derived({**read_result("stores").get("figures", {}), **parts[part]()})
        write_result("stores", figures, command="python bench/stores.py --before DIR")
        print(json.dumps(figures, indent=1), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(json.loads(sys.argv[2]))
    elif sys.argv[1:2] == ["--small-child"]:
        small_child(json.loads(sys.argv[2]))
    else:
        main()
