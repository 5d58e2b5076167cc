"""Devices, processes and plans: what scaling was measured to cost and to bring, part by part.

    python bench/scale.py --part devices [--part ...]

Each part is a file `scale_NAME.py` beside this one, with a function `measure(small)` that returns
`Measured(figures, details)`. A part brings its own figures in results/scale.json up to date and
keeps those of the others; what each part was measured with (command, commit, date) is in
`details`. `--small` is a quick run of the same code, which prints the figures and records nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from result import commit, read_result, write_result

# The parts and the figures that each of them owns.
PARTS: dict[str, tuple[str, ...]] = {
    "devices": (
        "pretend_tasks_equal",
        "pretend_tasks",
        "host_waits_update",
        "host_waits_update_before",
        "host_waits_greedy_step",
        "host_waits_greedy_step_before",
        "host_waits_beam_step",
        "host_waits_beam_step_before",
        "graph_breaks",
    ),
    "distributed": (
        "ddp_float64_weight_difference",
        "ddp_vs_crew_quiet",
        "two_vs_one_quiet",
        "busy_vs_one_process",
        "plan_error_percent",
    ),
    "bf16": ("bf16_base_speedup",),
    "beam": ("beam_long_speedup", "beam_long_speedup_base"),
}


class Measured(NamedTuple):
    """What a part found: its figures, and what else belongs beside them."""

    figures: Mapping[str, float]
    details: Mapping[str, object]


def main() -> None:
    """Measure the parts that are named."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--part", choices=PARTS, action="append", required=True)
    options.add_argument("--small", action="store_true")
    given = options.parse_args()
    for part in given.part:
        figures, details = importlib.import_module(f"scale_{part}").measure(small=given.small)
        if unknown := set(figures) - set(PARTS[part]):
            raise SystemExit(f"PARTS of scale.py lack the figures {sorted(unknown)} of {part}")
        print(json.dumps(figures, indent=1))
        if not given.small:
            record(part, figures, details)


def record(part: str, figures: Mapping[str, float], details: Mapping[str, object]) -> None:
    """Write the figures of one part; those of the other parts stay as they are."""
    before = read_result("scale")
    others = {
        name: value for name, value in before.get("figures", {}).items() if name not in PARTS[part]
    }
    command = f"python bench/scale.py --part {part}"
    evidence = {
        "command": command,
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }
    parts = {**before.get("details", {}), part: {**evidence, **details}}
    write_result(
        "scale",
        {**others, **figures},
        command="python bench/scale.py "
        + " ".join(f"--part {name}" for name in PARTS if name in parts),
        details=parts,
    )


if __name__ == "__main__":
    main()
