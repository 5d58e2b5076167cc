"""Corpora that are too large for memory, in a folder where the next training finds them.

That folder is `$REGARD_CACHE`, or else `~/.cache/regard`. A corpus lies there under a name that
follows from the settings of the data; it is read again when one of its files has changed, or when
its store is damaged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from regard.base.errors import RunError, system_problem
from regard.base.files import fingerprint, locked, states_of, whole_folder
from regard.corpora.store import StoreError

Watch = Callable[[int, float | None], None]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Told:
    """What hears of a long reading: how many records were read, and sentences to show."""

    watch: Watch = lambda records, share: None
    say: Say = lambda line: None


@runtime_checkable
class CachedCorpus(Protocol):
    """A corpus in a store."""

    @property
    def made_of(self) -> Mapping[str, Any]:
        """What it was made of, `files` among it."""

    def close(self) -> None:
        """Close its files."""


Corpus = TypeVar("Corpus", bound=CachedCorpus)


def cache_folder() -> Path:
    """Return the folder of what can be made again: `$REGARD_CACHE`, or that of this user."""
    named = os.environ.get("REGARD_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regard"


def folder_of(settings: Mapping[str, Any]) -> Path:
    """Return where the corpus of these settings is kept; they decide which records are read."""
    return cache_folder() / "corpora" / fingerprint([json.dumps(settings, sort_keys=True)])


def open_cached(
    folder: Path, files: Sequence[str], read: Callable[[Path], Corpus], *, say: Say
) -> Corpus | None:
    """Return the corpus if there is a whole store of unchanged files; say why there is none."""
    if not folder.is_dir():
        return None
    try:
        found = read(folder)
    except StoreError as error:
        say(f"The stored corpus is damaged ({error.problem}): it is read again.")
        return None
    states = states_of(files)
    if found.made_of["files"] == states:
        return found
    before = {tuple(state) for state in found.made_of["files"]}
    changed = [str(state[0]) for state in states if tuple(state) not in before]
    say(f"{changed[0] if changed else folder} has changed: the corpus is read again.")
    found.close()
    return None


@contextmanager
def building(folder: Path) -> Iterator[Path]:
    """Yield a folder to write a store into; after a failure nothing of it is left."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent, wait=True), whole_folder(folder) as temporary:
            yield temporary
    except OSError as error:
        raise RunError(
            f"{system_problem(error)} Corpora that are too large for memory are kept in "
            f"{cache_folder()}; REGARD_CACHE names another folder."
        ) from error
