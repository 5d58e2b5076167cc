"""What was measured of a model's engines, kept beside its run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from regard.engines.conversion import ENGINES


def remembered(run: Path | None, name: str) -> dict[str, Any]:
    """Return what was measured before; a file that cannot be read is as good as none."""
    if run is None:
        return {}
    try:
        found = json.loads((run / ENGINES / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(run: Path | None, name: str, key: str, value: dict[str, Any]) -> None:
    """Keep a measurement, if the run can be written to."""
    if run is None:
        return
    path = run / ENGINES / name
    temporary = path.with_name(f".{name}.{os.getpid()}.writing")
    text = json.dumps({**remembered(run, name), key: value}, indent=1) + "\n"
    try:
        path.parent.mkdir(exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError:
        return
