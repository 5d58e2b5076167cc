"""Sequential against parallel: what recurrent models and Transformers of one size cost by length.

    python bench/efficiency.py [--rounds 3] [--repeats 3]

The same 4,096 tokens are divided into texts of different lengths and read forwards and backwards,
on one thread; as `regard study efficiency` does it. CPU seconds are medians of the rounds, and the
whole measurement is repeated, for intervals by Student's t. Memory is what is kept for the
gradient; the path is the steps from the first position to the last. On one thread nothing runs
in parallel, so what is measured here are operations and their overhead, not the gain of many cores:
for that there is the path. Writes results/efficiency.json and docs/pictures/efficiency.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from regard.studies.drawings import draw_costs
from regard.studies.efficiency import LENGTHS, efficiency, growth
from regard.studies.small_models import MeanOverSeeds
from result import write_result

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "efficiency.png"


def main() -> None:
    """Measure, and write the result file and the picture."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--repeats", type=int, default=3)
    given = options.parse_args()
    torch.set_num_threads(1)
    lengths = (*LENGTHS, 2_048)
    repeats = [
        efficiency(lengths=lengths, rounds=given.rounds, on_model=lambda name: print(name))
        for _ in range(given.repeats)
    ]
    figures: dict[str, float] = {}
    details: dict[str, Any] = {"lengths": list(lengths)}
    for each in zip(*repeats, strict=True):
        first = each[0]
        key = first.name.lower().replace(", ", "_")
        growths = MeanOverSeeds.of([growth(one.seconds) for one in each])
        figures[f"{key}_time_growth"] = round(growths.mean, 2)
        figures[f"{key}_memory_growth"] = round(growth(first.kept_bytes), 2)
        details[key] = {
            "parameters": first.parameters,
            "milliseconds": {
                length: MeanOverSeeds.of([1e3 * one.seconds[length] for one in each]).to_dict()
                for length in lengths
            },
            "kept_megabytes": {n: round(b / 1e6, 2) for n, b in first.kept_bytes.items()},
            "path": first.path,
            "time_growth": growths.to_dict(),
        }
    draw_costs(repeats[0], PICTURE)
    command = f"python bench/efficiency.py --rounds {given.rounds} --repeats {given.repeats}"
    print(write_result("efficiency", figures, command=command, details=details))


if __name__ == "__main__":
    main()
