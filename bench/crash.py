"""Trainings that are killed at random moments: does each go on, and end with the same weights?

    python bench/crash.py [--kills 150] [--seed 1] [--fresh]

Small trainings (a recurrent translator; a Transformer alone, with two processes and with subword
sampling; a language model; fine-tuning) are killed by SIGKILL up to five times each and begun again
by the command line. The moments are drawn from the seed: before any change to a file of the run, in
the middle of an update or of a validation, while the data is read and tokenised, or at any time;
with two processes also the worker alone. In the end the best and the last weights, the optimiser's
memory and the test scores must be, byte for byte, those of a training that was never killed.
A training follows from seed and number, so a second call goes on where the first one stopped.
Writes results/crash.json: `kills`, how many of them the run `survived`, and how many were in
trainings that ended `bit_identical`.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from result import read_result, write_result

STEPS = 60
MOST_KILLS = 5  # of one training
PATIENCE_SECONDS = 600
LIMITS = (f"training.steps={STEPS}", "training.checkpoint_every=10", "training.validate_every=15")
GRAMMAR = ("data.grammar.words=small", "data.grammar.max_words=8", "data.grammar.size=400",
           "data.grammar.valid_size=20", "data.grammar.test_size=20",
           "training.validate_sentences=4", "decoding.beam=2")  # fmt: skip
TRANSFORMER = ("transformer-tiny", "model.layers=1", "model.model_dim=16", "model.heads=2",
               "model.feed_forward=16", "batches.tokens=400", *GRAMMAR)  # fmt: skip
LANGUAGE_MODEL = ("gpt-nano", "model.layers=1", "model.model_dim=16", "model.heads=2",
                  "model.context=16", "training.ema=0.9", "decoding.max_tokens=20")  # fmt: skip
SUBWORDS = ("tokenizer.kind=sentencepiece", "tokenizer.size=350")
# The recipe of each kind of training and its settings.
KINDS = {
    "recurrent": ("seq2seq-attention", "model.hidden=16", "tokenizer.kind=word", *GRAMMAR),
    "transformer": (*TRANSFORMER, "tokenizer.kind=word", "training.processes=1"),
    "two processes": (*TRANSFORMER, "tokenizer.kind=word", "training.processes=2"),
    "subword sampling": (*TRANSFORMER, *SUBWORDS, "training.subword_sampling=0.2"),
    "language model": LANGUAGE_MODEL,
    "fine-tuning": ("training.learning_rate=0.002", "training.warmup=5"),
}


@dataclass(frozen=True)
class Place:
    """Where a process is killed: `seconds` after the event of this kind and number."""

    event: str
    number: int
    seconds: float = 0.0
    whom: str = "first"
    """Which process: the first, a worker of it, or all."""


def main() -> None:
    """Kill trainings until there were enough kills."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=150)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--fresh", action="store_true", help="forget what was done before")
    options.add_argument("--child", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child is not None:
        child(given.child)
        return
    record = {} if given.fresh else read_result("crash").get("details", {})
    trainings: list[dict[str, Any]] = record.get("trainings", [])
    with tempfile.TemporaryDirectory(prefix="crash-") as temporary:
        bench = Bench(Path(temporary), list(KINDS))
        while sum(len(one["kills"]) for one in trainings) < given.kills:
            number = len(trainings)
            trainings.append(bench.killed_training(number, Random(f"{given.seed} {number}")))
            print(number, json.dumps(trainings[-1]), flush=True)
            save(trainings, given)


def save(trainings: list[dict[str, Any]], given: argparse.Namespace) -> None:
    """Write the result file."""
    kills = [kill for one in trainings for kill in one["kills"]]
    figures = {
        "kills": len(kills),
        "survived": sum(kill["survived"] for kill in kills),
        "bit_identical": sum(len(one["kills"]) for one in trainings if one["bit_identical"]),
        "trainings": len(trainings),
    }
    places = Counter(kill["event"] for kill in kills)
    write_result(
        "crash",
        figures,
        command=f"python bench/crash.py --kills {given.kills} --seed {given.seed}",
        details={"places": dict(sorted(places.items())), "trainings": trainings},
    )


class Bench:
    """Trainings in one folder: those that were never killed, and those that are."""

    def __init__(self, folder: Path, kinds: list[str]):
        self._folder = folder
        self._kinds = kinds
        text = folder / "text.txt"
        text.write_text(some_text(Random("text")), encoding="utf-8")
        other = folder / "other.txt"
        other.write_text(some_text(Random("other")), encoding="utf-8")
        self._text, self._other = text, other
        self._wanted: dict[str, tuple[bytes, ...]] = {}
        self._events: dict[str, dict[str, float]] = {}
        if "fine-tuning" in kinds:
            self._finish(self._begin("language model", folder / "base"))
        for kind in kinds:
            out = folder / kind.replace(" ", "-")
            self._finish(self._begin(kind, out))
            self._wanted[kind] = results(out)
            self._events[kind] = json.loads(events_file(out).read_text(encoding="utf-8"))

    def _begin(self, kind: str, out: Path) -> list[str]:
        """Return the command that begins a training of this kind."""
        recipe, *settings = KINDS[kind]
        if kind == "fine-tuning":
            settings = [recipe, *settings]
            start = ["finetune", str(self._folder / "base"), "--task", "continue"]
            start += ["--data", str(self._other)]
        elif kind == "language model":
            start = ["train", recipe, "--data", str(self._text)]
        else:
            start = ["train", recipe, "--built-in"]
        sets = [part for setting in (*settings, *LIMITS) for part in ("--set", setting)]
        return [*start, *sets, "--out", str(out)]

    def _finish(self, command: list[str]) -> None:
        """Run a command that is to end by itself."""
        program = Program(command, None)
        if program.wait():
            raise SystemExit(program.said())

    def killed_training(self, number: int, random: Random) -> dict[str, Any]:
        """Kill a training a few times, then let it end; return what became of it."""
        kind = self._kinds[number % len(self._kinds)]
        out = self._folder / f"killed-{number}"
        kills: list[dict[str, Any]] = []
        ended = False
        while len(kills) < MOST_KILLS and not ended:
            place = self._place(kind, random, first=not kills and number % 2 == 0)
            program = Program(self._command(kind, out), place)
            ended = program.kill()
            if not ended:
                kills.append({**asdict(place), "survived": False})
            _expect(program, kind, killed=not ended)
            for before in kills[:-1] if not ended else kills:
                before["survived"] = True
        if not ended:
            self._finish(self._command(kind, out))
            kills[-1]["survived"] = True
        same = results(out) == self._wanted[kind]
        return {"kind": kind, "bit_identical": same, "kills": kills}

    def _command(self, kind: str, out: Path) -> list[str]:
        """Return the command that goes on with a training, or begins it if nothing was kept."""
        if (out / "recipe.toml").exists():
            return ["train", "--resume", str(out)]
        return self._begin(kind, out)

    def _place(self, kind: str, random: Random, *, first: bool) -> Place:
        """Return where to kill a training of this kind next."""
        counted = self._events[kind]
        events = ["write", "write", "update", "validation", "preparation", "any time"]
        event = "preparation" if first else random.choice(events)
        if event == "preparation":
            return Place(event, 1, random.uniform(0.0, counted["preparation_seconds"]))
        whom = random.choice(("first", "worker", "all")) if kind == "two processes" else "first"
        if event == "any time":
            seconds = random.uniform(0.0, counted["seconds"])
            return Place(event, 1, seconds, "all" if whom == "worker" else whom)
        number = random.randint(1, max(1, int(counted[event]) // 2))
        return Place(event, number, whom="first" if event == "write" else whom)


def some_text(random: Random) -> str:
    """Return lines of made-up words."""
    words = ["".join(random.choices("abdeiklmnorstu", k=random.randint(2, 6))) for _ in range(50)]
    return "".join(" ".join(random.choices(words, k=8)) + ".\n" for _ in range(120))


def results(run: Path) -> tuple[bytes, ...]:
    """Return the files that must not depend on the kills, as they were written."""
    last = run / f"checkpoints/step-{STEPS:08d}"
    files = [run / "best/model.safetensors", *sorted(last.glob("*.safetensors"))]
    files += [path for path in (run / "test.json", run / "samples.jsonl") if path.exists()]
    return tuple(path.read_bytes() for path in files)


def events_file(out: Path) -> Path:
    """Return where a training that was not killed has counted its events."""
    return out.with_name(f"{out.name}.events")


def _expect(program: Program, kind: str, *, killed: bool) -> None:
    """Stop the bench if a process ended otherwise than it should, or left another one behind."""
    code, said = program.wait(), program.said()
    by_itself = program.place is not None and program.place.whom == "worker"
    fine = (code in (-signal.SIGKILL, 2) if by_itself else code == -signal.SIGKILL) or not killed
    if not fine or "Traceback" in said or (not killed and code):
        raise SystemExit(f"{kind}: exit code {code} after a kill at {program.place}\n{said}")
    program.require_no_orphans()


class Program:
    """One `regard` command in a process group of its own."""

    def __init__(self, command: list[str], place: Place | None):
        self.place = place
        out = Path(command[command.index("--out" if "--out" in command else "--resume") + 1])
        self._said = out.with_name(f"{out.name}.said")
        self._reader, writer = os.pipe()
        plan = json.dumps({"writer": writer, "out": str(out), "place": place and asdict(place)})
        with self._said.open("w", encoding="utf-8") as said:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--child", plan, *command],
                stdout=subprocess.DEVNULL,
                stderr=said,
                pass_fds=[writer],
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
        os.close(writer)

    def kill(self) -> bool:
        """Wait for the event, then kill; return whether the command ended by itself before."""
        assert self.place is not None
        select.select([self._reader], [], [], PATIENCE_SECONDS)
        reached = os.read(self._reader, 1) == b"x"  # or else the command has ended
        try:
            if reached:
                self._process.wait(self.place.seconds)
        except subprocess.TimeoutExpired:
            self._send_kill(self.place.whom)
        code = self.wait()
        return not (code == -signal.SIGKILL or (code and self.place.whom == "worker"))

    def _send_kill(self, whom: str) -> None:
        pid = self._process.pid
        workers = [other for other in _group(pid) if other != pid]
        if whom == "all":
            os.killpg(pid, signal.SIGKILL)
        elif whom == "worker" and workers:
            os.kill(workers[0], signal.SIGKILL)
        else:
            self._process.kill()

    def wait(self) -> int:
        """Return the exit code."""
        return self._process.wait(PATIENCE_SECONDS)

    def said(self) -> str:
        """Return what the command wrote to its standard error."""
        return self._said.read_text(encoding="utf-8", errors="replace")

    def require_no_orphans(self) -> None:
        """Stop the bench if workers outlive their first process."""
        end = time.monotonic() + 60
        while _group(self._process.pid):
            if time.monotonic() > end:
                os.killpg(self._process.pid, signal.SIGKILL)
                raise SystemExit(f"workers were left behind after a kill at {self.place}")
            time.sleep(0.05)
        os.close(self._reader)


def _group(leader: int) -> list[int]:
    """Return the processes of a group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] not in "ZX":
            found.append(int(path.parent.name))
    return found


def child(arguments: list[str]) -> None:
    """Run a command; count its events, and tell the parent of the one that it waits for."""
    plan, *command = arguments
    given = json.loads(plan)
    watch = Watch(Path(given["out"]), given["writer"], given["place"])
    import torch

    torch.set_num_threads(1)
    torch.nn.modules.module.register_module_forward_pre_hook(watch.computed)
    sys.addaudithook(watch.audited)
    from regard.cli.app import main as regard

    watch.passed("any time")
    try:
        regard(command)
    finally:
        watch.save()


class Watch:
    """Counts what happens in a process, and stops where it is to be killed."""

    def __init__(self, out: Path, writer: int, place: dict[str, Any] | None):
        self._out = out
        self._writer = writer
        self._place = place
        self._process = os.getpid()
        self._began = time.monotonic()
        self._folder_at = self._computed_at = 0.0
        self.counts: Counter[str] = Counter()

    def computed(self, module: Any, inputs: Any) -> None:
        """Count a module that computes."""
        import torch

        self._computed_at = self._computed_at or time.monotonic()
        self.passed("update" if torch.is_grad_enabled() else "validation")

    def audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count what changes a file of the run."""
        if event == "open":
            path, _, flags = arguments
            ours = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and self._ours(path)
        elif event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir"):
            inside = event in ("os.remove", "os.rmdir") and arguments[-1] != -1
            ours = inside or any(self._ours(path) for path in arguments[:2])
        else:
            return
        if ours:
            self._folder_at = self._folder_at or time.monotonic()
            self.passed("preparation")
            self.passed("write")

    def _ours(self, path: Any) -> bool:
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        return f"{name}/".startswith(f"{self._out}/")

    def passed(self, event: str) -> None:
        """Count an event; at the chosen one, tell the parent, and wait if it kills at once."""
        if os.getpid() != self._process:  # a worker
            return
        self.counts[event] += 1
        place = self._place
        if place and (place["event"], place["number"]) == (event, self.counts[event]):
            os.write(self._writer, b"x")
            if not place["seconds"] and place["whom"] != "worker":
                time.sleep(PATIENCE_SECONDS)

    def save(self) -> None:
        """Write the counts for the trainings to come."""
        now = time.monotonic()
        seconds = {"seconds": now - self._began}
        seconds["preparation_seconds"] = max(0.0, self._computed_at - self._folder_at)
        path = events_file(self._out)
        path.write_text(json.dumps({**self.counts, **seconds}), encoding="utf-8")


if __name__ == "__main__":
    main()
