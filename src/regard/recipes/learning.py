"""The course of a run's training, read from its records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.base.errors import RunError
from regard.recipes.run import Run
from regard.training.progress import read_metrics


def histories_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the records of a run by its name; those of several seeds by the seed."""
    run = Run.open(folder)
    seeds = sorted((run.folder / "seeds").glob("*/metrics.jsonl"))
    found = {f"seed {int(path.parent.name)}": read_metrics(path) for path in seeds}
    found = found or {run.folder.name: read_metrics(run.metrics)}
    if not any(found.values()):
        raise RunError(f"{run.folder} has no record of its training yet.")
    return found
