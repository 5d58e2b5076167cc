"""Parallel corpora that are too large for memory: read once, kept as a store, opened ever after.

A store lies in `$REGARD_CACHE`, or else in `~/.cache/regard`, under a name that follows from the
settings of the data. It is made again when one of its files has changed, or when it is damaged.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from regard.base.errors import DataError, RunError, system_problem
from regard.base.files import fingerprint, locked, states_of, whole_folder
from regard.corpora.blocks import digests_of, in_blocks
from regard.corpora.composition import LowestKeys
from regard.corpora.parallel import SentencePair, fingerprint_of
from regard.corpora.store import RowStore, RowWriter, StoredRow, StoredSequence, StoreError

KEY_ROWS = 1 << 20

Watch = Callable[[int, float | None], None]
Say = Callable[[str], None]


class StoredPairs(StoredSequence[SentencePair]):
    """Sentence pairs in a store of texts."""

    def _item(self, row: StoredRow) -> SentencePair:
        try:
            source, target = (str(side.tobytes(), "utf-8", "surrogatepass") for side in row)
        except UnicodeDecodeError:
            raise StoreError(self.store.folder, "a text is not UTF-8") from None
        return SentencePair(source, target)


@dataclass(frozen=True)
class StoredCorpus:
    """The three parts of a corpus in a store, and what was found when it was read."""

    train: StoredPairs
    valid: Sequence[SentencePair]
    test: Sequence[SentencePair]
    made_of: Mapping[str, Any]
    """Files, fingerprint, and the facts that were recorded when the store was built."""


@dataclass(frozen=True, kw_only=True)
class CorpusReading:
    """How a corpus is read: what names its store, and where its pairs come from."""

    settings: Mapping[str, Any]
    """All that decides which pairs are read; its files have absolute names."""
    files: Sequence[str]
    hold_out: Mapping[str, int]
    """How many pairs to hold out for the parts that no file has."""
    seed: int

    @property
    def folder(self) -> Path:
        """Where the store is."""
        return cache_folder() / "corpora" / fingerprint([json.dumps(self.settings, sort_keys=True)])


def cache_folder() -> Path:
    """Return the folder of what can be made again: `$REGARD_CACHE`, or that of this user."""
    named = os.environ.get("REGARD_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "regard"


def open_corpus(reading: CorpusReading, *, say: Say) -> StoredCorpus | None:
    """Return the corpus if there is a whole store of unchanged files; say why there is none."""
    folder = reading.folder / "pairs"
    if not folder.is_dir():
        return None
    try:
        store = RowStore(folder)
        found = _corpus(store)
    except StoreError as error:
        say(f"The stored corpus is damaged ({error.problem}): it is read again.")
        return None
    states = states_of(reading.files)
    if store.made_of["files"] == states:
        return found
    before = {tuple(state) for state in store.made_of["files"]}
    changed = [str(state[0]) for state in states if tuple(state) not in before]
    say(f"{changed[0] if changed else folder} has changed: the corpus is read again.")
    store.close()
    return None


def _corpus(store: RowStore) -> StoredCorpus:
    """Return the parts of a corpus as its description divides the rows."""
    try:
        rows = store.made_of["rows"]
        valid, test = (np.array(rows.get(part, ()), np.int64) for part in ("valid", "test"))
        facts = {"files", "fingerprint", "notes", "left_out"} <= store.made_of.keys()
    except (KeyError, AttributeError, TypeError, ValueError):
        facts = False
    if not facts or store.columns != 2 or store.width != 1:
        raise StoreError(store.folder, "it does not hold a parallel corpus")
    held = np.sort(np.concatenate([valid, test]))
    if len(held) and not 0 <= held[0] <= held[-1] < len(store):
        raise StoreError(store.folder, "it does not have the rows of its parts")
    every = StoredPairs(store)
    train = StoredPairs(store, held)
    return StoredCorpus(train, every.take(valid), every.take(test), store.made_of)


def build_corpus(
    reading: CorpusReading,
    pairs: Iterable[SentencePair],
    parts: Mapping[str, Iterable[SentencePair]],
    *,
    facts: Callable[[int, Mapping[str, int]], Mapping[str, Any]],
    watch: Watch,
) -> StoredCorpus:
    """Write a corpus into its store and return it; after a failure nothing of it is left.

    `pairs` are to train on, `parts` those of other files. `facts` returns what to record besides;
    it is told how many pairs there are and how many of them are held out for each part.
    """
    folder = reading.folder
    states = states_of(reading.files)  # before they are read: a change meanwhile is noticed
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder, wait=True), whole_folder(folder / "pairs") as temporary:
            with RowWriter(temporary, columns=2, width=1) as writer:
                with _HeldOut(reading, temporary) as held_out:
                    for block in in_blocks(pairs):
                        _write(writer, block)
                        held_out.add(block)
                        watch(len(writer), None)
                    rows = held_out.rows()
                total, held = len(writer), {part: len(found) for part, found in rows.items()}
                for part, others in parts.items():
                    first = len(writer)
                    for block in in_blocks(others):
                        _write(writer, block)
                    rows[part] = list(range(first, len(writer)))
                made_of = {"files": states, "rows": rows, "fingerprint": "", **facts(total, held)}
                writer.finish(made_of)
            store = RowStore(temporary)
            found = _corpus(store)
            text = chain(found.train, found.valid, found.test)
            store.describe({**store.made_of, "fingerprint": fingerprint_of(text)})
            store.close()
    except OSError as error:
        raise RunError(
            f"{system_problem(error)} Corpora that are too large for memory are kept in "
            f"{cache_folder()}; REGARD_CACHE names another folder."
        ) from error
    return _corpus(RowStore(folder / "pairs"))


def _write(writer: RowWriter, pairs: Sequence[SentencePair]) -> None:
    texts = [
        text.encode("utf-8", "surrogatepass")
        for pair in pairs
        for text in (pair.source, pair.target)
    ]
    writer.add(b"".join(texts), np.array([len(text) for text in texts], np.int64).reshape(-1, 2))


class _HeldOut:
    """Chooses what to hold out while pairs go by, as `parallel.hold_out` does of a list.

    The keys of all pairs are in a file, those that may be chosen in memory.
    """

    def __init__(self, reading: CorpusReading, folder: Path):
        self._reading = reading
        self._lowest = LowestKeys(sum(reading.hold_out.values()))
        self._keys = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (closed in __exit__)
        self._count = 0

    def add(self, pairs: Sequence[SentencePair]) -> None:
        """Take in some more pairs."""
        if self._reading.hold_out:
            keys = digests_of(f"{self._reading.seed}\t{pair.source}" for pair in pairs)
            self._lowest.add(keys)
            self._keys.write(keys.tobytes())
        self._count += len(pairs)

    def rows(self) -> dict[str, list[int]]:
        """Return the rows of each part that is held out."""
        sizes = {
            part: min(size, self._count // 10) for part, size in self._reading.hold_out.items()
        }
        part_of = self._lowest.parts(sizes)
        chosen = np.array(sorted(part_of), np.uint64)
        rows: dict[str, list[int]] = {part: [] for part in sizes}
        self._keys.seek(0)
        for first in range(0, self._count if sizes else 0, KEY_ROWS):
            keys = np.frombuffer(self._keys.read(KEY_ROWS * 8), np.uint64)
            for place in np.flatnonzero(np.isin(keys, chosen)).tolist():
                rows[part_of[int(keys[place])]].append(first + place)
        for part, found in rows.items():
            if sizes[part] and not found:
                raise DataError(
                    f"nothing can be held out for {part}: each source sentence occurs more often "
                    f"than {sizes[part]:,} times",
                    path=self._reading.files[0],
                    remedy="Give --valid and --test.",
                )
        return rows

    def __enter__(self) -> _HeldOut:
        return self

    def __exit__(self, *_: object) -> None:
        self._keys.close()
