"""The state of the code base: how many files one command runs through, imports, sizes, and speed.

    python bench/house.py [--write]
    python bench/house.py --before DIR [--rounds 9]

Walks: `regard train transformer-tiny` (3 updates on a small corpus with train, valid and test
parts, one process) and `regard translate RUN --input F --output G` run in child processes that
record every file of src/regard with a function that was called; bodies of modules and classes do
not count.
Sizes: source files, the largest file, the longest function (in cli/ the body alone, because the
signature declares the options), and the share of import lines in all lines that are not blank.
Speed: --before names a checkout of the code before a change (its .venv is used if it has one). Both
versions train and decode in turn, each time in a fresh process with one thread: `transformer-tiny`
for a fixed number of updates on the built-in corpus, then a trained run with the torch engine,
greedy and with a beam of 5. Ratios are median time before / median time now, so 1 is equal and more
is faster. Training counts the seconds between two updates as the run records them; decoding is
timed after a warm-up in the same process. Imports and model loading are in neither.
Writes results/house.json if --before is given and there are at least 9 rounds; prints the figures
otherwise. --write brings walks and sizes up to date in that file and keeps the rest: the speeds and
the figures of the earlier code, with the commit that they were measured at.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any, NamedTuple

from result import commit, read_result, write_result

HERE = Path(__file__).resolve()
ROUNDS = 9
LONGEST_FILE = 400
CO_OPTIMIZED = 1  # set for functions, not for bodies of modules and classes
WARM_UP = 20  # updates; the first record of a training is written after 20
SEARCHES = {"greedy": 1, "beam5": 5}
GRAMMAR = ("data.grammar.words=small", "data.grammar.max_words=24")
ONE_PROCESS = ("training.processes=1", "tokenizer.size=1000", "training.seed=1")


class Version(NamedTuple):
    """A checkout of the project."""

    name: str
    folder: Path

    @property
    def package(self) -> Path:
        """The folder of the package."""
        return self.folder / "src" / "regard"

    def run(self, *arguments: object, folder: Path) -> None:
        """Run a child of this script with the code of this version."""
        own = self.folder / ".venv" / "bin" / "python"
        python = own if own.exists() else Path(sys.executable)
        environment = os.environ | {
            "PYTHONPATH": str(self.folder / "src"),
            "OMP_NUM_THREADS": "1",
        }
        command = [str(part) for part in (python, HERE, *arguments)]
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{self.name}: {' '.join(command)}\n{done.stdout}{done.stderr}")


class Function(NamedTuple):
    """A function and how many lines it has."""

    lines: int
    name: str


@dataclass(frozen=True)
class Sizes:
    """What the source files of a version amount to."""

    files: dict[str, int]
    imports: int
    lines: int
    longest: Function

    @property
    def largest(self) -> str:
        """The file with the most lines."""
        return max(self.files, key=lambda name: self.files[name])


def main() -> None:
    """Measure this checkout, and an earlier one if it is given."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--before", type=Path, help="checkout of the earlier code")
    options.add_argument("--write", action="store_true", help="record walks and sizes alone")
    options.add_argument("--rounds", type=int, default=ROUNDS, help="of the speed measurements")
    options.add_argument("--updates", type=int, default=100, help="timed updates of a training")
    options.add_argument("--learn", type=int, default=400, help="updates of the run to decode with")
    options.add_argument("--sentences", type=int, default=300, help="to decode")
    given = options.parse_args()
    versions = [Version("now", HERE.parents[1])]
    if given.before:
        versions.append(Version("before", given.before.resolve()))
    figures: dict[str, float] = {}
    notes: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for version in versions:
            found, details = structure(version, Path(temporary))
            suffix = "" if version.name == "now" else "_before"
            figures |= {f"{name}{suffix}": value for name, value in found.items()}
            notes[version.name] = {"commit": commit_of(version), **details}
        if given.before:
            found, details = speeds(versions, Path(temporary), given)
            figures |= found
            notes |= details
    print(json.dumps(figures, indent=1))
    if given.before and given.rounds >= ROUNDS:
        before = commit_of(versions[1])
        command = f"python bench/house.py --before CHECKOUT_OF_{before} --rounds {given.rounds}"
        notes["speeds were measured at"] = {"commit": commit(), "command": command}
        print(f"wrote {write_result('house', figures, command=command, details=notes)}")
    elif given.write:
        record = read_result("house")
        details = {**record.get("details", {}), **notes}
        speeds_from = {"commit": record.get("commit"), "command": record.get("command")}
        measured = details.setdefault("speeds were measured at", speeds_from)
        command = f"python bench/house.py --write (walks, sizes); {measured['command']} (speeds)"
        figures = {**record.get("figures", {}), **figures}
        print(f"wrote {write_result('house', figures, command=command, details=details)}")


def commit_of(version: Version) -> str:
    """Return the commit of a checkout."""
    if version.name == "now":
        return commit()
    command = ["git", "-C", str(version.folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def structure(version: Version, folder: Path) -> tuple[dict[str, float], dict[str, object]]:
    """Return the figures about walks and sizes, and the names behind them."""
    sizes = measure(version.package)
    walks = walk(version, folder / f"walk-{version.name}")
    figures = {
        "walk_train_files": len(walks["train"]),
        "walk_translate_files": len(walks["translate"]),
        "import_share": round(sizes.imports / sizes.lines, 4),
        "source_files": len(sizes.files),
        "largest_file_lines": sizes.files[sizes.largest],
        "files_over_400_lines": sum(lines > LONGEST_FILE for lines in sizes.files.values()),
        "longest_function_lines": sizes.longest.lines,
    }
    details: dict[str, object] = {
        "largest_file": sizes.largest,
        "longest_function": sizes.longest.name,
        "train_files": walks["train"],
        "translate_files": walks["translate"],
    }
    return figures, details


def measure(package: Path) -> Sizes:
    """Read all source files of a package."""
    files: dict[str, int] = {}
    imports = lines = 0
    longest = Function(0, "")
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(package).as_posix()
        tree = ast.parse(text)
        rows = text.splitlines()
        files[name] = len(rows)
        lines += sum(bool(row.strip()) for row in rows)
        imported = {
            number
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        imports += len(imported)
        longest = max([longest, *functions(tree, name)])
    return Sizes(files, imports, lines, longest)


def functions(tree: ast.Module, file: str) -> Iterator[Function]:
    """Yield the functions of a file; in cli/ their bodies alone count."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0].lineno if file.startswith("cli/") else node.lineno
            last = node.end_lineno or first
            yield Function(last - first + 1, f"{file}: {node.name}")


def walk(version: Version, folder: Path) -> dict[str, list[str]]:
    """Train and translate under a tracer; return the files of each in the order of first calls."""
    folder.mkdir(parents=True)
    sizes = ("--size", 400, "--valid-size", 40, "--test-size", 40)
    small = ("--words", "small", "--max-words", 16)
    version.run("time", "corpus.json", json.dumps(
        [["corpus", "grammar", "--pair", "en-de", *map(str, (*sizes, *small)), "--out", "corpus"]]
    ), folder=folder)  # fmt: skip
    data = [f'data.{part}=["corpus/{part}.en","corpus/{part}.de"]'
            for part in ("train", "valid", "test")]  # fmt: skip
    settings = sets(*data, *ONE_PROCESS, "training.steps=3")
    commands = {
        "train": ["train", "transformer-tiny", *settings, "--out", "run"],
        "translate": ["translate", "run", "--input", "corpus/test.en", "--output", "out.de"],
    }
    for name, arguments in commands.items():
        version.run("trace", f"{name}.json", version.package, *arguments, folder=folder)
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in commands}


def speeds(
    versions: Sequence[Version], folder: Path, given: argparse.Namespace
) -> tuple[dict[str, float], dict[str, object]]:
    """Return the ratios of speed, before / now, with the seconds of every round."""
    parts = ("train", *SEARCHES)
    seconds: dict[str, dict[str, list[float]]] = {
        version.name: {part: [] for part in parts} for version in versions
    }
    evidence: dict[str, set[str]] = {"training losses": set(), "translations": set()}
    for version in versions:
        prepare(version, folder / f"speed-{version.name}", given)
    for number in range(given.rounds):
        # The order changes from round to round, so that neither version is always the first.
        for version in versions if number % 2 else reversed(versions):
            place, found = folder / f"speed-{version.name}", seconds[version.name]
            trained, losses = time_training(version, place, f"round-{number}", given.updates)
            found["train"].append(trained)
            evidence["training losses"].add(losses)
            for search, elapsed in time_decoding(version, place).items():
                found[search].append(elapsed)
            for search in SEARCHES:
                evidence["translations"].add(search + (place / f"{search}.de").read_text("utf-8"))
    figures = {f"speed_{part}_ratio": ratio(seconds, (part,)) for part in parts}
    figures["speed_decode_ratio"] = ratio(seconds, tuple(SEARCHES))
    same = {
        "training losses": len(evidence["training losses"]) == 1,
        "translations": len(evidence["translations"]) == len(SEARCHES),
    }
    sizes = {name: getattr(given, name) for name in ("rounds", "updates", "learn", "sentences")}
    return figures, {"seconds": seconds, "same in both versions": same, "sizes": sizes}


def ratio(seconds: dict[str, dict[str, list[float]]], parts: Sequence[str]) -> float:
    """Return median time before / median time now, of the sum of these parts."""
    medians = {
        name: median(map(sum, zip(*(found[part] for part in parts), strict=True)))
        for name, found in seconds.items()
    }
    return round(medians["before"] / medians["now"], 3)


def prepare(version: Version, folder: Path, given: argparse.Namespace) -> None:
    """Train the run to decode with, and write the sentences."""
    folder.mkdir(parents=True)
    sizes = ("--size", 1, "--valid-size", 1, "--test-size", given.sentences, "--seed", 2)
    small = ("--words", "small", "--max-words", 24)
    train(version, folder, "trained", given.learn)
    arguments = ["corpus", "grammar", *map(str, (*sizes, *small)), "--out", "sentences"]
    version.run("time", "corpus.json", json.dumps([arguments]), folder=folder)


def train(version: Version, folder: Path, name: str, updates: int) -> None:
    """Train on the built-in corpus into a folder of this name."""
    limits = (f"training.steps={updates}", "training.validate_every=1000000")
    sizes = ("data.grammar.size=5000", "data.grammar.valid_size=20", "data.grammar.test_size=1")
    settings = sets(*GRAMMAR, *sizes, *ONE_PROCESS, *limits, "training.checkpoint_every=1000000")
    arguments = ["train", "transformer-tiny", *settings, "--out", name]
    version.run("time", f"{name}.json", json.dumps([arguments]), folder=folder)


def time_training(version: Version, folder: Path, name: str, updates: int) -> tuple[float, str]:
    """Return the seconds of these updates after the first ones, and the losses of the training."""
    train(version, folder, name, WARM_UP + updates)
    lines = (folder / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    first = next(row["seconds"] for row in rows if row.get("step") == WARM_UP)
    last = next(row["seconds"] for row in rows if row["kind"] == "end")
    return last - first, json.dumps([row["loss"] for row in rows if "loss" in row])


def time_decoding(version: Version, folder: Path) -> dict[str, float]:
    """Return the seconds of translating the sentences with each search."""
    lines = (folder / "sentences" / "test.en").read_text(encoding="utf-8").splitlines()
    (folder / "few.en").write_text("\n".join(lines[:5]) + "\n", encoding="utf-8")
    commands = []
    for search, beam in SEARCHES.items():
        for source in ("few.en", "sentences/test.en"):
            commands.append(
                ["translate", "trained", "--input", source, "--output", f"{search}.de",
                 "--engine", "torch", "--threads", "1", "--beam", str(beam)]
            )  # fmt: skip
    version.run("time", "decoding.json", json.dumps(commands), folder=folder)
    seconds = json.loads((folder / "decoding.json").read_text())
    return dict(zip(SEARCHES, seconds[1::2], strict=True))


def sets(*settings: str) -> list[str]:
    """Return settings as options of the command line."""
    return [part for setting in settings for part in ("--set", setting)]


def trace(record: str, package: str, *arguments: str) -> None:
    """In a child: run one command and record the files whose functions were called."""
    from regard.cli.app import main as regard

    root = package + os.sep
    files: dict[str, None] = {}

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(root):
            files.setdefault(code.co_filename.removeprefix(root))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        run_command(regard, list(arguments))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    Path(record).write_text(json.dumps(list(files)))


def time_commands(record: str, commands: str) -> None:
    """In a child: run commands one after the other and record the seconds of each."""
    from regard.cli.app import main as regard

    seconds = []
    for arguments in json.loads(commands):
        gc.collect()  # else a full collection, a tenth of a second, falls into one or the other
        began = time.perf_counter()
        run_command(regard, arguments)
        seconds.append(time.perf_counter() - began)
    Path(record).write_text(json.dumps(seconds))


def run_command(regard: Any, arguments: list[str]) -> None:
    """Run a command of the program; pass on only a failure."""
    try:
        regard(arguments)
    except SystemExit as end:
        if end.code:
            raise


CHILDREN: dict[str, Callable[..., None]] = {"trace": trace, "time": time_commands}

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in CHILDREN:
        CHILDREN[sys.argv[1]](*sys.argv[2:])
    else:
        main()
