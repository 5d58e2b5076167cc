"""Where files are written, and what is said when they cannot be."""

from __future__ import annotations

from pathlib import Path

from regard.base.errors import RegardError


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, making its folder where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise RegardError(f"{path}: cannot be written ({error.strerror}).") from error


def unknown_suffix(path: Path, known: tuple[str, ...]) -> RegardError:
    """Return the error for a file name that no format goes with."""
    return RegardError(
        f"{path}: cannot tell a format from the suffix '{path.suffix}'. "
        f"Choose one of: {', '.join(known)}."
    )
