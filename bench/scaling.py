"""Laws of scale in miniature: loss against parameters, data and compute, with intervals.

    python bench/scaling.py [--tokens 262144] [--seeds 1 2 3]

Character Transformers of four widths are trained on four numbers of tokens of Tiny Shakespeare with
three seeds, each from scratch; `regard study scaling` does the same with any text. Fitted are
L = E + A / N^alpha + B / D^beta (Hoffmann et al. 2022) and plain powers along each axis; intervals
are of a bootstrap over the seeds. Writes results/scaling.json and docs/pictures/scaling.png.
The data is $REGARD_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from regard.studies.drawings import draw_runs
from regard.studies.scaling import exponent_intervals, exponents, fit_law, frontier, scaled_runs
from result import write_result
from small_texts import shakespeare

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "scaling.png"


def main() -> None:
    """Train the grid, fit the laws, and write the result file and the picture."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tokens", type=int, default=262_144, help="of the longest training")
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    given = options.parse_args()
    torch.set_num_threads(1)
    runs = scaled_runs(
        shakespeare(),
        tokens=[given.tokens >> shift for shift in (3, 2, 1, 0)],
        seeds=given.seeds,
        on_run=lambda run: print(run, flush=True),
    )
    law, values, intervals = fit_law(runs), exponents(runs), exponent_intervals(runs)
    expected = law.loss([run.parameters for run in runs], [run.tokens for run in runs])
    errors = [abs(run.loss / float(loss) - 1) for run, loss in zip(runs, expected, strict=True)]
    figures = {name: round(value, 4) for name, value in values.items()}
    for name, (low, high) in intervals.items():
        figures |= {f"{name}_low": round(low, 4), f"{name}_high": round(high, 4)}
    figures["mean_relative_error_of_the_law"] = round(sum(errors) / len(errors), 4)
    details = {
        "law": law.to_dict(),
        "frontier": [run.to_dict() for run in frontier(runs)],
        "runs": [run.to_dict() for run in runs],
    }
    draw_runs(runs, PICTURE)
    seeds = " ".join(map(str, given.seeds))
    command = f"python bench/scaling.py --tokens {given.tokens} --seeds {seeds}"
    print(write_result("scaling", figures, command=command, details=details))


if __name__ == "__main__":
    main()
