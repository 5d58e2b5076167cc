"""Signals at random moments of trainings: what is lost, and whether resuming is exact.

Three kinds of training (a recurrent translator, a Transformer with two processes, a forecaster) are
stopped by SIGINT and SIGTERM at random moments, resumed by `regard train --resume DIR`, and stopped
again. Each then runs to its end, and its best and last weights are compared byte for byte with
those of a training that was never stopped. An update is lost if the checkpoint that a signal leaves
is older than the last update that was finished before the signal was sent.
Writes results/interrupts.json: `signals` that stopped a training, `most_updates_lost` by one of
them, and the trainings that ended `bit_identical` of all `trainings`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from result import write_result

STEPS = 400
DONE = f"all {STEPS} updates done"
LIMITS = (f"training.steps={STEPS}", "training.checkpoint_every=150", "training.validate_every=90")
GRAMMAR = ("data.grammar.words=small", "data.grammar.max_words=8", "data.grammar.size=400",
           "data.grammar.valid_size=20", "data.grammar.test_size=20", "tokenizer.kind=word",
           "training.validate_sentences=4", "decoding.beam=1")  # fmt: skip
KINDS = {
    "recurrent": ("seq2seq-attention", "model.hidden=16", *GRAMMAR),
    "two processes": ("transformer-tiny", "model.layers=1", "model.model_dim=16", "model.heads=2",
                      "model.feed_forward=16", "training.processes=2", *GRAMMAR),
    "series": ("fibonacci-rnn",),
}  # fmt: skip
# A child that is stopped like a program in a terminal, and records each update that it finished.
PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import torch
torch.set_num_threads(1)
from regard.training.progress import MetricsLog
plain, record = MetricsLog.updated, sys.argv[1]
def updated(self, progress, result, facts):
    plain(self, progress, result, facts)
    with open(record, "w") as file:
        file.write(str(progress.step))
MetricsLog.updated = updated
from regard.cli.app import main
main(sys.argv[2:])
"""


def main() -> None:
    """Stop trainings until there were enough signals."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--signals", type=int, default=40)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    moments = random.Random(given.seed)
    rows: list[dict[str, Any]] = []
    trainings: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wanted = {}
        for kind in KINDS:
            finish(start(command(kind, folder / kind), folder / "record"))
            wanted[kind] = weights(folder / kind)
        while len(rows) < given.signals:
            kind = list(KINDS)[len(trainings) % len(KINDS)]
            out = folder / f"stopped-{len(trainings)}"
            rows += stopped_training(kind, out, moments)
            same = weights(out) == wanted[kind]
            trainings.append({"kind": kind, "bit_identical": same})
            print(len(rows), trainings[-1], flush=True)
    figures = {
        "signals": len(rows),
        "most_updates_lost": max(row["lost"] for row in rows),
        "trainings": len(trainings),
        "bit_identical": sum(one["bit_identical"] for one in trainings),
    }
    print(json.dumps(figures, indent=1))
    line = f"python bench/interrupts.py --signals {given.signals} --seed {given.seed}"
    write_result("interrupts", figures, command=line, details={"stops": rows, "runs": trainings})


def command(kind: str, out: Path) -> list[str]:
    """Return the command that begins a training of this kind."""
    recipe, *settings = KINDS[kind]
    sets = [part for setting in (*settings, *LIMITS) for part in ("--set", setting)]
    return ["train", recipe, *sets, "--out", str(out)]


def stopped_training(kind: str, out: Path, moments: random.Random) -> list[dict[str, Any]]:
    """Stop a training up to five times, then let it end; return what each signal has cost."""
    arguments, rows = command(kind, out), []
    record = out.with_suffix(".record")
    for _ in range(5):
        record.unlink(missing_ok=True)
        program = start(arguments, record)
        began = time.monotonic()
        while not record.exists() and program.poll() is None and time.monotonic() - began < 120:
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, 0.8))
        done = int((record.read_text() if record.exists() else "") or 0)
        number = moments.choice([signal.SIGINT, signal.SIGTERM])
        program.send_signal(number)
        _, said = program.communicate()
        if program.returncode == 0 or (DONE in said and "report:" in said):
            return rows  # the signal came after the end
        if program.returncode != 128 + number or "Traceback" in said:
            raise SystemExit(f"{kind}: exit code {program.returncode} after {number}\n{said}")
        steps = [int(path.name[5:13]) for path in out.glob("checkpoints/step-*")]
        kept = max(steps, default=0)
        rows.append({"kind": kind, "signal": int(number), "seen": done, "kept": kept,
                     "lost": max(0, done - kept)})  # fmt: skip
        if out.exists():
            arguments = ["train", "--resume", str(out)]
    finish(start(arguments, record))
    return rows


def start(arguments: list[str], record: Path) -> subprocess.Popen[str]:
    """Start `regard` with these arguments."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(record), *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def finish(program: subprocess.Popen[str]) -> None:
    """Wait for a program that is to end by itself."""
    _, said = program.communicate()
    if program.returncode:
        raise SystemExit(said)


def weights(run: Path) -> tuple[bytes, ...]:
    """Return the best and the last weights of a training as they were written."""
    last = f"checkpoints/step-{STEPS:08d}/model.safetensors"
    return tuple((run / name).read_bytes() for name in ("best/model.safetensors", last))


if __name__ == "__main__":
    main()
