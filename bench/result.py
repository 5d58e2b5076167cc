"""Result files of the benchmarks: figures with the command, commit and machine behind them.

`details` holds what the benchmark itself recorded besides its figures; `notes` is a list of
sentences by a person: how a figure was reached, and what to keep in mind when reading it.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("regard", "torch", "numpy", "sacrebleu", "sentencepiece")


def write_result(
    name: str,
    figures: Mapping[str, float],
    *,
    command: str,
    packages: tuple[str, ...] = (),
    details: Mapping[str, object] | None = None,
) -> Path:
    """Write `results/NAME.json`; the notes of an earlier result of this name are kept.

    Read the notes again after a new measurement: they may speak of the old figures.
    """
    notes = read_result(name).get("notes")
    record = {
        "name": name,
        "figures": dict(figures),
        "command": command,
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version()} | versions((*PACKAGES, *packages)),
        "machine": machine(),
        **({"details": dict(details)} if details else {}),
        **({"notes": notes} if notes else {}),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read_result(name: str) -> dict[str, Any]:
    """Return what is on record under this name; empty if there is nothing."""
    path = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def commit() -> str:
    """Return the commit that was measured, with a plus if files were changed since."""
    head = _git("rev-parse", "--short", "HEAD")
    return head + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, object]:
    """Return what the speed depends on: processor, cores and memory; nothing that names a host."""
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else ""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"processor": model, "cores": os.cpu_count(), "memory_gib": round(memory)}


def _git(*arguments: str) -> str:
    folder = Path(__file__).parent
    return subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
    ).stdout.strip()
