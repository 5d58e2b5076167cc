"""The nearest valid name for one that is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from regard.base.errors import SettingsError


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a sentence that names the nearest known name, or all of them if none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(names)}."


def require_known(name: str, known: Iterable[str], *, what: str) -> None:
    """Refuse a name that is not among the known ones."""
    names = list(known)
    if name not in names:
        raise SettingsError(f"Unknown {what} {name!r}. {suggestion(name, names)}")
