"""What all contestants of a speed test share; each runs in an environment of its own.

A contestant is a process. It reads "go N" from its standard input, makes N updates, and answers
with the target tokens it learned from, the seconds it took and its peak memory, that of processes
which help it included.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from itertools import islice
from multiprocessing import active_children
from pathlib import Path

VOCABULARY, SIDE_TOKENS = 8_000, 4_096
CLIP, BETAS, LEARNING_RATE = 1.0, (0.9, 0.98), 1e-3
ANSWER = "answer:"

# The same share is dropped of embeddings, attention weights, activations and sublayers.
SIZES = {
    "tiny": {"layers": 4, "model_dim": 128, "heads": 4, "feed_forward": 256, "dropout": 0.3},
    "base": {"layers": 6, "model_dim": 512, "heads": 8, "feed_forward": 2048, "dropout": 0.1},
}


def orders() -> Iterator[int]:
    """Wait for numbers of updates to make, until there are no more."""
    for line in sys.stdin:
        word, _, count = line.partition(" ")
        if word != "go":
            return
        yield int(count)


def answer(tokens: int, seconds: float) -> None:
    """Say how many target tokens were learned from in how many seconds, and the peak memory."""
    helpers = [child.pid for child in active_children() if child.pid is not None]
    megabytes = sum(map(peak_megabytes, [os.getpid(), *helpers]))
    print(f"{ANSWER} {tokens} {seconds:.6f} {megabytes:.1f}", flush=True)


def peak_megabytes(process: int) -> float:
    """Return the most memory that a process has held; what it shares with others counts too."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def serve(updates: Iterator[int]) -> None:
    """Make the updates that are asked for; each yields the number of its target tokens."""
    for count in orders():
        began = time.perf_counter()
        tokens = sum(islice(updates, count))
        answer(tokens, time.perf_counter() - began)
