"""Bulk translation: peak memory against the length of the file, and what a kill costs.

The model is tiny and its weights are almost random: nothing here depends on what it says.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from regard.runs.run import Run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from result import write_result

OVERRIDES = [
    "data.grammar.size=200",
    "data.grammar.valid_size=10",
    "data.grammar.words=small",
    "tokenizer.kind=word",
    "model.hidden=8",
    "model.embedding=8",
    "training.steps=1",
    "training.validate_sentences=2",
    "decoding.beam=1",
    "decoding.max_length=4",
]
# A process of its own, which says at its end how much memory it had at most.
WORKER = """
import sys
from regard.cli.app import main
try:
    main(sys.argv[1:])
except SystemExit as stop:
    if stop.code:
        raise
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak.split()[1])
"""


def write_lines(path: Path, count: int) -> None:
    """Write lines of three to eight made-up words, hardly two of them alike."""
    random = Random(1)
    words = [f"{first}{second}" for first in "bdfgklmnprst" for second in ("a", "o", "el", "un")]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            file.write(" ".join(random.choices(words, k=random.randint(3, 8))) + "\n")


def command(run: Path, source: Path, out: Path) -> list[str]:
    """Return the command line of one translation."""
    files = ["--input", str(source), "--output", str(out), "--engine", "torch"]
    return [sys.executable, "-c", WORKER, "translate", str(run), *files]


def peak_mib(run: Path, source: Path, out: Path) -> float:
    """Translate a file and return the peak memory of the process."""
    done = subprocess.run(command(run, source, out), capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1024


def killed_and_resumed(run: Path, source: Path, out: Path, *, after: int) -> int:
    """Kill a translation after some recorded lines and run it again; return the lines kept."""
    journal = out.with_name(f".{out.name}.part.json")
    process = subprocess.Popen(
        command(run, source, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while _lines_done(journal) < after:
        if process.poll() is not None:
            raise RuntimeError("the translation ended before it could be killed")
        time.sleep(0.5)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = _lines_done(journal)
    subprocess.run(command(run, source, out), capture_output=True, check=True)
    return kept


def _lines_done(journal: Path) -> int:
    if not journal.exists():
        return 0
    return int(json.loads(journal.read_text(encoding="utf-8"))["position"]["lines"])


def main() -> None:
    """Measure, check and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=20_000)
    parser.add_argument("--many", type=int, default=100_000)
    options = parser.parse_args()
    recipe = expect(find_recipe("seq2seq-attention", overrides=OVERRIDES), TranslationRecipe)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train_translator(recipe, Run.create(folder / "run", recipe))
        peaks = {}
        for count in (options.few, options.many):
            write_lines(folder / f"{count}.txt", count)
            source, out = folder / f"{count}.txt", folder / f"{count}.out"
            peaks[count] = peak_mib(folder / "run", source, out)
            print(f"{count:>9,} lines: {peaks[count]:.1f} MiB at most", flush=True)
        whole = (folder / f"{options.many}.out").read_bytes()
        resumed = folder / "resumed.out"
        kept = killed_and_resumed(
            folder / "run", folder / f"{options.many}.txt", resumed, after=options.many // 4
        )
        same = resumed.read_bytes() == whole
        print(f"killed with {kept:,} lines on record; the same file after going on: {same}")
    slope = (peaks[options.many] - peaks[options.few]) * 2**20 / (options.many - options.few)
    path = write_result(
        "bulk",
        {
            "lines_few": options.few,
            "lines_many": options.many,
            "peak_mib_few": round(peaks[options.few], 1),
            "peak_mib_many": round(peaks[options.many], 1),
            "slope_bytes_a_line": round(slope, 2),
            "lines_on_record_when_killed": kept,
            "same_file_after_kill": float(same),
            "lines_out": whole.count(b"\n"),
        },
        command=f"python bench/bulk_memory.py --few {options.few} --many {options.many}",
        details={"peak": "VmHWM of the process of the command, libraries included"},
    )
    print(f"Wrote {path}")


if __name__ == "__main__":
    main()
