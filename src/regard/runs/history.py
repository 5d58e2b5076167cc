"""The course of a training and what its test found, read from the records of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.base.errors import RunError
from regard.pictures.curves import learning_curves_svg
from regard.pictures.svg import notebook_lines, notebook_picture
from regard.runs.run import Run
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


def run_html(run: Run) -> str:
    """Return a run as HTML: a few lines, and its learning curves."""
    title = run.table.get("title")
    lines = [("run", str(run.folder)), ("task", run.task)]
    lines += [("title", str(title))] if title else []
    shown = notebook_lines(*lines, *_tested(run))
    try:
        histories = histories_of(run.folder)
    except RunError:  # nothing was trained yet
        return shown
    return shown + notebook_picture(learning_curves_svg(histories), label="learning curves")


def _tested(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the test; those that carry a signature with it."""
    path = run.folder / "test.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for name, value in found.items():
        if isinstance(value, dict) and "signature" in value:
            yield str(value["name"]), f"{value['value']:.2f} ({value['signature']})"
        elif isinstance(value, int | float):
            yield name, f"{value:.4g}"
