"""What a run records of how it was made: the format of its files, versions, data and place."""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from regard.base.budgets import shown
from regard.base.errors import RunError
from regard.base.files import read_json

EVIDENCE = "evidence.json"
# The format of the files of a run; raised when an older version could not read them any more.
FORMAT = 1
PACKAGES = ("regard", "torch", "sentencepiece", "safetensors")


def made_by() -> dict[str, Any]:
    """Return the format of a run and the versions of what writes it."""
    versions = {"python": sys.version.split()[0]} | {name: version(name) for name in PACKAGES}
    return {"format": FORMAT, "versions": versions}


def evidence_of(fingerprint: str) -> dict[str, Any]:
    """Return what a checkpoint records of how it was made: format, versions, and which data."""
    return {**made_by(), "data": fingerprint}


def recorded(folder: Path) -> dict[str, Any]:
    """Return the evidence that a run has recorded; the first runs had none."""
    path = folder / EVIDENCE
    found = read_json(path, owner="run") if path.exists() else {}
    if not isinstance(found, dict):
        raise RunError(f"{path} is not the evidence of a run. Restore it, or remove it.")
    return found


def require_format(folder: Path) -> None:
    """Refuse a run of a later format; every earlier one can be read."""
    found = recorded(folder)
    number = found.get("format", FORMAT)
    if type(number) is not int or number < 1:
        raise RunError(f"{folder / EVIDENCE}: the format is {shown(number)}, not a number from 1.")
    if number > FORMAT:
        versions = found.get("versions")
        writer = versions.get("regard") if isinstance(versions, dict) else None
        by = f" by Regard {writer}" if isinstance(writer, str) else ""
        raise RunError(
            f"{folder} was written{by} in format {number}; Regard {version('regard')} reads "
            f"formats up to {FORMAT}. Install a newer version, from its clone or its wheel."
        )


def way_back(folder: Path) -> str:
    """Return the current directory as seen from a run, so that both can be moved together."""
    try:
        return os.path.relpath(Path.cwd(), folder.resolve())
    except ValueError:  # on another drive
        return str(Path.cwd())
