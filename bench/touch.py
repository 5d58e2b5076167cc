"""What it costs that a model can be touched: decoding without a probe, beside an older version.

    git archive aa2c213 src | tar x -C /tmp/before
    python bench/touch.py --demo runs/demo --before /tmp/before/src

Both versions decode the same sentences with the demo's models, greedily and with a beam, in turns
of a fraction of a second each and in an order that changes; `decode_ratio_unused` is the median of
the ratios (before / now, so that more is faster) of the processor time of neighbouring turns, over
all four settings. The processor time does not count what other programs do meanwhile.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from result import write_result

ROUND = """
import sys, time, torch
torch.set_num_threads(1)
import regard
from regard.tasks.translation.data import read_test
model = regard.load(sys.argv[1])
texts = [pair.source for pair in read_test(model.recipe.data)[:24]]
model.translate(texts, attention=False, beam=int(sys.argv[2]))
print("ready", flush=True)
for _ in sys.stdin:
    begin = time.process_time()
    model.translate(texts, attention=False, beam=int(sys.argv[2]))
    print(time.process_time() - begin, flush=True)
"""


def started(source: Path, run: Path, beam: int) -> subprocess.Popen[str]:
    """Start a process that decodes whenever it is asked to."""
    process = subprocess.Popen(
        [sys.executable, "-c", ROUND, str(run), str(beam)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def seconds(process: subprocess.Popen[str]) -> float:
    """Let a process decode once; return its processor time."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("again\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> None:
    """Measure and write bench/results/touch.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, required=True, help="the folder of regard demo")
    parser.add_argument("--before", type=Path, required=True, help="src of the older version")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    now = Path(__file__).parents[1] / "src"
    found: dict[str, list[float]] = {}
    for name in ("attention", "transformer"):
        for beam in (1, 5):
            pair = [started(each, options.demo / name, beam) for each in (options.before, now)]
            ratios = []
            for number in range(options.rounds):
                order = (0, 1) if number % 2 else (1, 0)
                times = {which: seconds(pair[which]) for which in order}
                ratios.append(times[0] / times[1])
            found[f"{name}_beam{beam}"] = ratios
            for process in pair:
                process.kill()
            print(name, beam, round(statistics.median(ratios), 4))
    every = [ratio for ratios in found.values() for ratio in ratios]
    figures = {"decode_ratio_unused": round(statistics.median(every), 4)}
    figures |= {key: round(statistics.median(ratios), 4) for key, ratios in found.items()}
    command = "python bench/touch.py --demo runs/demo --before /tmp/before/src"
    print(write_result("touch", figures, command=command, details={"rounds": options.rounds}))


if __name__ == "__main__":
    main()
