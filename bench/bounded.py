"""What grows with the data, in bounded memory: training's end, series, graphs, lines and servers.

    python bench/bounded.py RUN [--only training_end served forecast graph line]

RUN is a transformer-tiny trained on Multi30k (raw text, en-de) for some hundred updates. It is
continued for 20 updates, with its test and all that follows; the peak is that of the whole process.
Fifty copies of it are served within a limit of memory, each under a pair of languages of its own,
and asked in turn, twice; every answer is compared with the offline translation. The series (five
million rows), the graph (a million nodes, ten million edges) and the line (100,000 words without a
full stop) are made up. A line is right if it equals the translations of its pieces. Where a
machine has other work, processor seconds say more than seconds. Writes results/bounded.json; parts
that are not measured keep their figures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

from bulk_memory import WORKER
from regard.tasks.translation.model import load
from regard.text.sentences import LONGEST_SENTENCE, split_sentences
from result import read_result, write_result

NAME = "bounded"
MODELS, LIMIT_MB = 50, 1_000
ROWS, NODES, EDGES, WORDS = 5_000_000, 1_000_000, 10_000_000, 100_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def main() -> None:
    """Measure what is asked for, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("run", type=Path, metavar="RUN")
    options.add_argument("--only", nargs="*", choices=[*PARTS], default=[*PARTS])
    given = options.parse_args()
    figures = dict(read_result(NAME).get("figures", {}))
    for part in given.only:
        with tempfile.TemporaryDirectory(prefix="regard-bounded-") as folder:
            figures |= PARTS[part](given.run, Path(folder))
        print(json.dumps(figures, indent=1), flush=True)
        sizes = {"models": MODELS, "limit_mb": LIMIT_MB, "rows": ROWS, "nodes": NODES,
                 "edges": EDGES, "words": WORDS}  # fmt: skip
        write_result(NAME, figures, command="python bench/bounded.py RUN", details=sizes)


def regard(*arguments: object) -> tuple[float, float]:
    """Run a command in a process of its own; return its peak in megabytes and its seconds."""
    began = time.monotonic()
    command = [sys.executable, "-c", WORKER, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return round(int(done.stdout.split()[-1]) / 1_024, 1), round(time.monotonic() - began, 1)


def training_end(run: Path, folder: Path) -> dict[str, float]:
    """Continue the training for a few updates, and finish it."""
    copy = Path(shutil.copytree(run, folder / "run"))
    shutil.rmtree(copy / "engines", ignore_errors=True)  # so that the patience is measured again
    done = max(int(one.name.partition("-")[2]) for one in (copy / "checkpoints").glob("step-*"))
    peak, _ = regard("train", "--resume", copy, "--set", f"training.steps={done + 20}")
    return {"training_end_peak_mb": peak}


def forecast(run: Path, folder: Path) -> dict[str, float]:
    """Train a forecaster on a long series, test it and draw it."""
    steps = np.arange(ROWS)
    noise = np.random.default_rng(1).normal(size=ROWS)
    values = 10 + 3 * np.sin(2 * np.pi * steps / 24) + 0.5 * noise
    np.savetxt(folder / "series.csv", values, fmt="%.4f", header="load", comments="")
    peak, seconds = regard(
        "train", "forecast", "--data", folder / "series.csv", "--out", folder / "run",
        "--set", "training.steps=300", "--set", "training.validate_every=300",
    )  # fmt: skip
    score = json.loads((folder / "run" / "test.json").read_text())
    return {
        "forecast_peak_mb": peak,
        "forecast_seconds": seconds,
        "forecast_test_windows": score["windows"],
        "forecast_mse_of_naive": round(score["mse"] / score["naive_mse"], 4),
    }


def graph(run: Path, folder: Path) -> dict[str, float]:
    """Train a graph attention network in batches of nodes, and score all nodes."""
    write_graph(folder / "graph.npz")
    peak, seconds = regard(
        "train", "gat-cora", "--data", folder / "graph.npz", "--out", folder / "run",
        "--set", "training.steps=60", "--set", "training.validate_every=60",
        "--set", "training.seeds=1", "--set", "training.batch_nodes=512",
    )  # fmt: skip
    found = json.loads((folder / "run" / "test.json").read_text())
    return {
        "graph_peak_mb": peak,
        "graph_seconds": seconds,
        "graph_accuracy": round(found["accuracy_mean"], 1),
    }


def write_graph(path: Path) -> None:
    """Write a graph of ten classes: most edges stay within one, half of the nodes show theirs."""
    random = np.random.default_rng(1)
    labels = random.integers(0, 10, NODES)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(11))
    source, other = random.integers(0, NODES, EDGES), random.integers(0, NODES, EDGES)
    low, high = starts[labels[source]], starts[labels[source] + 1]
    alike = order[low + (random.random(EDGES) * (high - low)).astype(np.int64)]
    target = np.where(random.random(EDGES) < 0.7, alike, other)
    columns = np.sort(random.integers(10, 128, (NODES, 8)), axis=1)
    shown = random.random(NODES) < 0.5
    columns[shown, 0] = labels[shown]
    parts = np.split(random.permutation(NODES), [NODES // 2, 3 * NODES // 4])
    np.savez(
        path, x_data=np.ones(columns.size, np.float32), x_indices=columns.ravel(),
        x_indptr=np.arange(0, columns.size + 1, 8), x_shape=np.array([NODES, 128]), y=labels,
        edges=np.stack([source, target]), idx_train=parts[0], idx_val=parts[1], idx_test=parts[2],
    )  # fmt: skip


def line(run: Path, folder: Path) -> dict[str, float]:
    """Translate one line of very many words."""
    random = Random(1)
    words = "a man woman dog child is standing walking on the street in front of red house"
    text = " ".join(random.choices(words.split(" "), k=WORDS))
    (folder / "in.txt").write_text(f"a dog\n{text}\na man\n", encoding="utf-8")
    peak, seconds = regard(
        "translate", run, "--input", folder / "in.txt", "--output", folder / "out.txt", "--beam", 1
    )
    first, found, last = (folder / "out.txt").read_text(encoding="utf-8").splitlines()
    pieces = [one.text for one in split_sentences(text, longest=LONGEST_SENTENCE)]
    model = load(run)
    alone = [
        one.text for one in model.translate(["a dog", *pieces, "a man"], attention=False, beam=1)
    ]
    same = [first, found, last] == [alone[0], " ".join(alone[1:-1]), alone[-1]]
    return {
        "line_peak_mb": peak,
        "line_seconds": seconds,
        "line_pieces": len(pieces),
        "line_right": float(same),
    }


def served(run: Path, folder: Path) -> dict[str, float]:
    """Serve many models within a limit of memory, and ask each of them twice."""
    text = "A man in a red shirt is standing on the street."
    expected = load(run).translate(text, attention=False).text
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    pairs = [f"en-x{LETTERS[number // 26]}{LETTERS[number % 26]}" for number in range(MODELS)]
    named = [option for pair in pairs for option in ("--pair", pair)]
    program = "from regard.cli.app import main; main()"
    command = ["serve", *[str(run)] * MODELS, *named, "--port", str(port),
               "--memory", f"{LIMIT_MB}MB"]  # fmt: skip
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", program, *command])
    try:
        while not answers(port):
            time.sleep(0.1)
        up, up_cpu = time.monotonic() - began, cpu_seconds(process.pid)
        seconds, memory, threads, wrong, first_cpu = [], [], [], 0, 0.0
        for pair in [*pairs, *pairs]:
            asked = time.monotonic()
            wrong += translated(port, text, pair.partition("-")[2]) != expected
            seconds.append(time.monotonic() - asked)
            if len(seconds) == 1:
                first_cpu = cpu_seconds(process.pid) - up_cpu
            status = Path(f"/proc/{process.pid}/status").read_text()
            facts = dict(row.split(":\t", 1) for row in status.splitlines() if ":\t" in row)
            memory.append(int(facts["VmRSS"].split()[0]) / 1_024)
            threads.append(int(facts["Threads"]))
    finally:
        process.terminate()
        process.wait(60)
    return {
        "served_models": MODELS,
        "served_up_seconds": round(up, 2),
        "served_up_cpu_seconds": round(up_cpu, 2),
        "served_first_answer_seconds": round(seconds[0], 2),
        "served_first_answer_cpu_seconds": round(first_cpu, 2),
        "served_slowest_answer_seconds": round(max(seconds), 2),
        "served_median_answer_seconds": round(sorted(seconds)[len(seconds) // 2], 2),
        "served_wrong_answers": wrong,
        "served_memory_limit_mb": LIMIT_MB,
        "served_memory_peak_mb": round(max(memory) * 1.048576, 1),
        "served_threads": max(threads),
    }


def cpu_seconds(process: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answers(port: int) -> bool:
    """Return whether the server is up."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=30) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def translated(port: int, text: str, target: str) -> str:
    """Return the server's translation."""
    body = json.dumps({"q": text, "source": "en", "target": target}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/translate", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return str(json.loads(answer.read())["translatedText"])


PARTS: dict[str, Callable[[Path, Path], dict[str, float]]] = {
    "served": served,
    "line": line,
    "training_end": training_end,
    "forecast": forecast,
    "graph": graph,
}


if __name__ == "__main__":
    main()
