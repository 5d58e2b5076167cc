"""Parallel corpora that are too large for memory: read once, kept as a store, opened ever after."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from regard.base.errors import DataError
from regard.base.files import states_of
from regard.corpora.blocks import digests_of, in_blocks
from regard.corpora.cache import Say, Watch, building, folder_of, open_cached
from regard.corpora.composition import LowestKeys
from regard.corpora.parallel import SentencePair, fingerprint_of
from regard.corpora.store import RowStore, RowWriter, StoredRow, StoredSequence, StoreError

KEY_ROWS = 1 << 20


class StoredPairs(StoredSequence[SentencePair]):
    """Sentence pairs in a store of texts."""

    def _item(self, row: StoredRow) -> SentencePair:
        source, target = self.store.texts(row)
        return SentencePair(source, target)


@dataclass(frozen=True)
class StoredCorpus:
    """The three parts of a corpus in a store, and what was found when it was read."""

    train: StoredPairs
    valid: Sequence[SentencePair]
    test: Sequence[SentencePair]
    made_of: Mapping[str, Any]
    """Files, fingerprint, and the facts that were recorded when the store was built."""

    def close(self) -> None:
        """Close the files of the store."""
        self.train.store.close()


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
        return folder_of(self.settings) / "pairs"


def open_corpus(reading: CorpusReading, *, say: Say) -> StoredCorpus | None:
    """Return the corpus if there is a whole store of unchanged files; say why there is none."""
    return open_cached(
        reading.folder, reading.files, lambda folder: _corpus(RowStore(folder)), say=say
    )


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
    with building(folder) as temporary:
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
    return _corpus(RowStore(folder))


def _write(writer: RowWriter, pairs: Sequence[SentencePair]) -> None:
    writer.add_texts([text for pair in pairs for text in (pair.source, pair.target)])


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
