"""Labelled texts that are too large for memory: read once, kept as a store, opened ever after."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.base.files import fingerprint, states_of
from regard.corpora.blocks import in_blocks
from regard.corpora.cache import Say, Watch, building, folder_of, open_cached
from regard.corpora.labelled import LabelledText, held_rows
from regard.corpora.store import RowStore, RowWriter, StoredRow, StoredSequence, StoreError

# Texts that are held out of a large corpus for each part, at most about so many.
MOST_HELD_OUT = 20_000
TEXTS, PARTS = "texts", "parts"  # the two stores of a corpus
LEFT_OUT, VALID, TEST = range(3)  # the rows of the second: numbers of texts


class StoredTexts(StoredSequence[LabelledText]):
    """Labelled texts in a store of labels and texts."""

    def _item(self, row: StoredRow) -> LabelledText:
        return LabelledText(*self.store.texts(row))


@dataclass(frozen=True)
class StoredLabelledTexts:
    """The parts of a labelled corpus in a store, and what was found when it was read."""

    train: StoredTexts
    valid: Sequence[LabelledText]
    test: Sequence[LabelledText]
    made_of: Mapping[str, Any]
    """Files, fingerprint, labels, and the notes that were recorded when the store was built."""

    def close(self) -> None:
        """Close the files of the store."""
        self.train.store.close()


@dataclass(frozen=True, kw_only=True)
class LabelledReading:
    """How a labelled corpus is read: what names its store, and what is held out of it."""

    settings: Mapping[str, Any]
    """All that decides which texts are read; its files have absolute names."""
    files: Sequence[str]
    hold_out: Mapping[str, tuple[float, int]]
    """The share of each class, and the seed, for the parts that no file has."""
    share: tuple[float, int]
    """The share of each class to train on, and its seed."""

    @property
    def folder(self) -> Path:
        """Where the store is."""
        return folder_of(self.settings) / "labelled"

    def rows(self, labels: NDArray[np.int32]) -> dict[str, NDArray[np.int64]]:
        """Return the rows that are held out for each part, and those that are `unused`."""
        rest, found = np.arange(len(labels)), {}
        for part, (share, seed) in self.hold_out.items():
            chosen = held_rows(labels[rest], share=share, seed=seed, most=MOST_HELD_OUT)
            found[part], rest = rest[chosen], np.delete(rest, chosen)
        share, seed = self.share
        if share < 1:  # what is held out here is what is used
            found["unused"] = np.delete(rest, held_rows(labels[rest], share=share, seed=seed))
        return found


def open_labelled(reading: LabelledReading, *, say: Say) -> StoredLabelledTexts | None:
    """Return the corpus if there is a whole store of unchanged files; say why there is none."""
    return open_cached(reading.folder, reading.files, _labelled_texts, say=say)


def build_labelled(
    reading: LabelledReading,
    texts: Iterable[LabelledText],
    parts: Mapping[str, Iterable[LabelledText]],
    *,
    facts: Callable[[Mapping[str, int], Mapping[str, int]], Mapping[str, Any]],
    watch: Watch,
) -> StoredLabelledTexts:
    """Write a corpus into its store and return it; after a failure nothing of it is left.

    `texts` are to train on, `parts` those of other files. `facts` returns what to record besides;
    it is told how many texts each label has and how many are held out for each part.
    """
    states = states_of(reading.files)  # before they are read: a change meanwhile is noticed
    with building(reading.folder) as temporary:
        for name in (TEXTS, PARTS):
            (temporary / name).mkdir()
        with RowWriter(temporary / TEXTS, columns=2, width=1) as writer:
            numbers, order = array("i"), dict[str, int]()
            for block in in_blocks(texts):
                _write(writer, block)
                numbers.extend(order.setdefault(one.label, len(order)) for one in block)
                watch(len(writer), None)
            labels = np.frombuffer(numbers, np.int32)
            rows = reading.rows(labels)
            sizes = np.bincount(labels, minlength=len(order)).tolist()
            held = {part: len(rows[part]) for part in reading.hold_out}
            recorded = facts(dict(zip(order, sizes, strict=True)), held)
            unused = [rows[part] for part in (*reading.hold_out, "unused") if part in rows]
            for part, others in parts.items():
                first = len(writer)
                for block in in_blocks(others):
                    _write(writer, block)
                rows[part] = np.arange(first, len(writer))
                unused.append(rows[part])
            writer.finish({"files": states, "fingerprint": "", **recorded})
        left_out = np.sort(np.concatenate(unused)) if unused else np.empty(0, np.int64)
        with RowWriter(temporary / PARTS, columns=1, width=4) as writer:
            for chosen in (left_out, *(rows.get(part, left_out[:0]) for part in ("valid", "test"))):
                writer.add(chosen.astype("<u4").tobytes(), np.array([[len(chosen)]], np.int64))
            writer.finish({})
        found = _labelled_texts(temporary)
        every = chain(found.train, found.valid, found.test)
        whole = fingerprint(f"{one.label}\t{one.text}\n" for one in every)
        found.train.store.describe({**found.made_of, "fingerprint": whole})
        found.close()
    return _labelled_texts(reading.folder)


def _labelled_texts(folder: Path) -> StoredLabelledTexts:
    """Return the parts of a corpus as its second store divides the rows."""
    store, parts = RowStore(folder / TEXTS), RowStore(folder / PARTS)
    try:
        if (store.columns, store.width) != (2, 1) or (len(parts), parts.columns) != (3, 1):
            raise StoreError(folder, "it does not hold labelled texts")
        if not {"files", "fingerprint", "labels", "notes", "warnings"} <= store.made_of.keys():
            raise StoreError(folder, "it does not say what it was made of")
        rows = [numbers.astype(np.int64) for (numbers,) in parts.take(np.arange(3))]
    finally:
        parts.close()
    if any(len(one) and not 0 <= int(one.max()) < len(store) for one in rows):
        raise StoreError(folder, "it does not have the rows of its parts")
    every = StoredTexts(store)
    train = StoredTexts(store, rows[LEFT_OUT])
    return StoredLabelledTexts(
        train, every.take(rows[VALID]), every.take(rows[TEST]), store.made_of
    )


def _write(writer: RowWriter, texts: Sequence[LabelledText]) -> None:
    writer.add_texts([part for one in texts for part in (one.label, one.text)])
