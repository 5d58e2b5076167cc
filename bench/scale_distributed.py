"""Several processes: do they learn what one learns, how fast are they, and is the plan right?

    python bench/scale.py --part distributed        # 8 minutes, on a machine with two quiet cores

- `ddp_float64_weight_difference`: the largest difference between the weights that one and two
  processes reach in 20 updates without dropout, over small runs of every task, Muon among them.
- `ddp_vs_crew_quiet`: target tokens a second of two processes, beside those of commit 7426679,
  whose processes shared gradients through memory. Both train the same model in turns.
- `busy_vs_one_process`: the same for two processes and one, each beside a program that keeps a core
  busy.
- `plan_error_percent`: how far the planned memory is from that of the tensors of a real update, at
  most, over three models on one and two processes. The resident memory is in the details.

All speeds are medians of runs that take turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scale import Measured
from scale_beam import BEFORE, ROOT, unpacked

CONTESTANT = Path(__file__).parent / "contestants" / "processes.py"
SIZES = ("tiny", "small", "deep")


def measure(*, small: bool) -> Measured:
    """Return the figures of this part."""
    rounds, seconds = (1, 2.0) if small else (7, 9.0)
    figures: dict[str, float] = {}
    details: dict[str, object] = {"before": BEFORE, "rounds": rounds, "seconds": seconds}
    with tempfile.TemporaryDirectory() as folder:
        older = unpacked(BEFORE, Path(folder)) / "src"
        quiet: dict[str, list[float]] = {"two": [], "crew": [], "one": []}
        for number in range(rounds):
            quiet["two"].append(speed(ROOT / "src", 2, seconds))
            quiet["crew"].append(speed(older, 2, seconds))
            if number < 3:
                quiet["one"].append(speed(ROOT / "src", 1, seconds))
        with busy_core():
            busy: dict[str, list[float]] = {"two": [], "one": []}
            for _ in range(rounds):
                busy["two"].append(speed(ROOT / "src", 2, seconds))
                busy["one"].append(speed(ROOT / "src", 1, seconds))
        figures["ddp_vs_crew_quiet"] = ratio(quiet["two"], quiet["crew"])
        figures["two_vs_one_quiet"] = ratio(quiet["two"], quiet["one"])
        figures["busy_vs_one_process"] = ratio(busy["two"], busy["one"])
        details["tokens_per_second"] = {"quiet": quiet, "beside a busy program": busy}
    memory = {
        f"{size}, {processes}": contestant(ROOT / "src", "memory", str(processes), size)
        for size in SIZES[: 1 if small else None]
        for processes in (1, 2)
    }
    errors = [abs(one["planned"] / one["tensors"] - 1) for one in memory.values()]
    figures["plan_error_percent"] = round(100 * max(errors), 2)
    details["memory"] = memory
    differences = weight_differences(small=small)
    figures["ddp_float64_weight_difference"] = max(differences.values())
    details["weight_differences"] = differences
    return Measured(figures, details)


def ratio(found: list[float], wanted: list[float]) -> float:
    """Return the medians' ratio."""
    return round(statistics.median(found) / statistics.median(wanted), 3)


def speed(source: Path, processes: int, seconds: float) -> float:
    """Return target tokens a second of a training with this source."""
    found: float = contestant(source, "speed", str(processes), str(seconds))
    return round(found, 1)


def contestant(source: Path, *arguments: str) -> Any:
    """Return what a contestant with this source prints last."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    said = subprocess.run(
        [sys.executable, str(CONTESTANT), *arguments],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(said.splitlines()[-1])


@contextmanager
def busy_core() -> Iterator[None]:
    """Let another program keep a core busy inside the block."""
    program = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        program.kill()
        program.wait()


def weight_differences(*, small: bool) -> dict[str, float]:
    """Return how far the weights of two processes are from those of one, for runs of every task."""
    sys.path.insert(0, str(ROOT))
    from tests.several_processes import RUNS, farthest, learning_of, take

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in list(RUNS)[-1:] if small else RUNS:
            learning = learning_of(name, Path(folder) / name, double=True)
            one, two = (take(learning, processes=n, updates=20, double=True) for n in (1, 2))
            found[name] = farthest(two.weights, one.weights)
    return found
