"""Everything that computes gives the same results on the pretend accelerator as on the CPU.

The cases are those of `pretend_tasks`, which runs in a process of its own: a device that torch
knows stays until the process ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("pretend_tasks.py")
# One of each kind; `make test-all` runs all cases.
QUICK = (
    "train transformer",
    "train node-classifier",
    "decode recurrent-translator: greedy",
    "decode transformer-translator: beam",
    "decode transformer-translator: sampling",
    "decode transformer-translator: all constraints",
    "generate language-model: sampling",
    "classify",
    "trace recurrent-translator",
)


def on_both(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return what each case finds, by its name."""
    paths = [str(SCRIPT.parents[2] / "src"), os.environ.get("PYTHONPATH", "")]
    found = subprocess.run(
        [sys.executable, SCRIPT, *names],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "REGARD_DEVICE": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return {row.pop("case"): row for row in map(json.loads, found.stdout.splitlines())}


def test_results_are_those_of_the_processor() -> None:
    found = on_both([f"={name}" for name in QUICK])
    assert set(found) == set(QUICK)
    assert {name: row for name, row in found.items() if not row.get("equal")} == {}


@pytest.mark.slow
def test_all_results_are_those_of_the_processor() -> None:
    found = on_both([])
    assert len(found) > 70
    assert {name: row for name, row in found.items() if not row.get("equal")} == {}


def test_the_pretend_device_refuses_what_a_gpu_would() -> None:
    found = on_both(["refused"])["refused"]
    assert found["refused"] == [
        "mixed with the CPU",
        "numpy",
        "double precision",
        "indexed by the CPU",
        "generator of the CPU",
    ]


def test_few_waits_for_the_device() -> None:
    """A ratchet: where a program asks for a number, the device has to finish all it was given."""
    found = on_both(["waits"])["waits"]
    assert {name: found[name] for name in WAITS if found[name] > WAITS[name]} == {}


WAITS = {"update": 1, "greedy_step": 0.25, "beam_step": 2}
