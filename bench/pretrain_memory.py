"""Pre-training: peak memory against the size of the text.

    python bench/pretrain_memory.py [--small 10] [--large 1000]

A character model is trained for some updates on texts of this many megabytes of made-up words. Each
training is `regard train gpt-nano` in a process of its own, which reads, encodes and learns.
Both validate on the same short text. Writes results/pretrain-memory.json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from bulk_memory import WORKER
from result import write_result

LINES = 20_000  # made at a time; the text is this block again and again, each time in another order


def main() -> None:
    """Measure both and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--small", type=int, default=10, help="megabytes")
    options.add_argument("--large", type=int, default=1_000, help="megabytes")
    options.add_argument("--steps", type=int, default=50)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_text(folder / "valid.txt", 100_000, seed=2)
        peaks = {}
        for size in (given.small, given.large):
            write_text(folder / "text.txt", size * 10**6, seed=1)
            peaks[size] = peak_mib(folder, given.steps, out=folder / f"run-{size}")
            print(f"{size:>6} MB of text: {peaks[size]:.1f} MiB at most", flush=True)
    figures = {
        "megabytes_small": given.small,
        "megabytes_large": given.large,
        "peak_mib_small": round(peaks[given.small], 1),
        "peak_mib_large": round(peaks[given.large], 1),
        "peak_mib_difference": round(peaks[given.large] - peaks[given.small], 1),
    }
    command = f"python bench/pretrain_memory.py --small {given.small} --large {given.large}"
    details = {"steps": given.steps, "peak": "VmHWM of the process, libraries included"}
    print(figures, write_result("pretrain-memory", figures, command=command, details=details))


def write_text(path: Path, size: int, *, seed: int) -> None:
    """Write lines of made-up words, at least this many bytes."""
    random = Random(seed)
    words = [f"{first}{second}" for first in "bdfgklmnprst" for second in ("a", "o", "el", "un")]
    lines = [" ".join(random.choices(words, k=random.randint(3, 12))) for _ in range(LINES)]
    written = 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            random.shuffle(lines)
            written += file.write("\n".join(lines)[: size - written] + "\n")


def peak_mib(folder: Path, steps: int, *, out: Path) -> float:
    """Train and return the peak memory of the process."""
    settings = {
        "data.text": folder / "text.txt",
        "data.valid": folder / "valid.txt",
        "training.steps": steps,
        "training.warmup": 10,
        "decoding.max_tokens": 20,
    }
    changes = [text for key, value in settings.items() for text in ("--set", f"{key}={value}")]
    command = [sys.executable, "-c", WORKER, "train", "gpt-nano", "--out", str(out), *changes]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1024


if __name__ == "__main__":
    main()
