"""Training examples in a store: pairs and texts cut into tokens once, by several processes."""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from regard.base.files import whole_folder
from regard.base.protocols import Tokenizer
from regard.batching.batch import Example, TrainingExamples
from regard.batching.texts import LabelledIds
from regard.corpora.blocks import mapped
from regard.corpora.labelled import LabelledText
from regard.corpora.parallel import SentencePair
from regard.corpora.store import (
    RowStore,
    RowWriter,
    StoredRow,
    StoredSequence,
    StoreError,
    type_of,
)

BLOCK_PAIRS = 2_000  # that a process cuts at a time
NARROW = 1 << 16  # ids that fit into two bytes

Item = TypeVar("Item")
Watch = Callable[[int, float | None], None]


class StoredExamples(StoredSequence[Example]):
    """Examples in a store of token ids; an id that the vocabulary does not have is refused."""

    def _item(self, row: StoredRow) -> Example:
        for ids, size in zip(row, self.store.made_of["sizes"], strict=True):
            if len(ids) and int(ids.max()) >= size:
                raise StoreError(self.store.folder, f"a token has the id {int(ids.max())}")
        return Example(*(array("i", ids.astype(np.intc).tobytes()) for ids in row))


def stored_examples(
    pairs: StoredSequence[SentencePair], store: RowStore, *, max_length: int
) -> TrainingExamples:
    """Return the examples of a store, which `write_examples` made of these pairs."""
    examples: StoredSequence[Example] = StoredExamples(store)
    lengths = examples.lengths()
    left_out = np.flatnonzero(lengths.max(axis=1) >= max_length)
    if len(left_out):
        lengths = np.delete(lengths, left_out, axis=0)
        pairs, examples = pairs.without(left_out), examples.without(left_out)
    lengths += 1  # the end marks; shorter than `max_length`, they have room
    return TrainingExamples(pairs, examples, lengths, left_out)


def open_examples(
    folder: Path, made_of: Mapping[str, object], *, rows: int, say: Callable[[str], None]
) -> RowStore | None:
    """Return the store if it is whole and was made of this; say why it is not used."""
    if not folder.is_dir():
        return None
    try:
        store = RowStore(folder)
    except StoreError as error:
        say(f"The tokens of this run are damaged ({error.problem}): they are made again.")
        return None
    if store.made_of == dict(made_of) and len(store) == rows and store.columns == 2:
        return store
    store.close()
    say(f"The tokens in {folder} are of other data or of another tokenizer: they are made again.")
    return None


def write_examples(
    folder: Path,
    pairs: StoredSequence[SentencePair],
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    made_of: Mapping[str, object],
    watch: Watch,
    processes: int | None = None,
) -> RowStore:
    """Cut the pairs into tokens, as `write_rows` does, and return the store that holds them."""
    source, target = tokenizers

    def cut(pair: SentencePair) -> tuple[Sequence[int], Sequence[int]]:
        return source.encode(pair.source), target.encode(pair.target)

    size = max(one.size for one in tokenizers)
    return write_rows(
        folder, pairs, cut, size=size, made_of=made_of, watch=watch, processes=processes
    )


class StoredLabelledIds(StoredSequence[LabelledIds]):
    """Texts in a store of token ids, each with the number of its label."""

    def _item(self, row: StoredRow) -> LabelledIds:
        ids, label = row
        vocab, labels = self.store.made_of["sizes"]
        if len(label) != 1 or int(label[0]) >= labels or (len(ids) and int(ids.max()) >= vocab):
            raise StoreError(self.store.folder, "a text has a token or a label that is not known")
        return LabelledIds(ids.tolist(), int(label[0]))


def write_labelled(
    folder: Path,
    texts: StoredSequence[LabelledText],
    encode: Callable[[str], Sequence[int]],
    labels: Sequence[str],
    *,
    made_of: Mapping[str, object],
    watch: Watch,
    processes: int | None = None,
) -> RowStore:
    """Cut labelled texts into tokens as `write_examples` does; `made_of` has their `sizes`."""
    place = {label: number for number, label in enumerate(labels)}

    def cut(one: LabelledText) -> tuple[Sequence[int], Sequence[int]]:
        return encode(one.text), (place[one.label],)

    return write_rows(folder, texts, cut, made_of=made_of, watch=watch, processes=processes)


def write_rows(
    folder: Path,
    items: StoredSequence[Item],
    cut: Callable[[Item], tuple[Sequence[int], Sequence[int]]],
    *,
    size: int | None = None,
    made_of: Mapping[str, object],
    watch: Watch,
    processes: int | None = None,
) -> RowStore:
    """Write two columns of numbers for each item, by several processes; numbers are below `size`.

    The store does not depend on the number of processes. After a failure nothing of it is left.
    """
    width = 2 if size is not None and size <= NARROW else 4
    cutter = _Cutter(items, cut, type_of(width))
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)  # of other data
    folder.parent.mkdir(parents=True, exist_ok=True)
    total = len(items)
    with whole_folder(folder) as temporary, RowWriter(temporary, columns=2, width=width) as writer:
        for _, (ids, lengths) in mapped(cutter, _blocks(total), processes=processes):
            writer.add(ids, np.frombuffer(lengths, np.int64).reshape(-1, 2))
            watch(len(writer), len(writer) / total)
        writer.finish(made_of)
    return RowStore(folder)


def _blocks(rows: int) -> Iterator[list[range]]:
    for first in range(0, rows, BLOCK_PAIRS):
        yield [range(first, min(first + BLOCK_PAIRS, rows))]


@dataclass(frozen=True)
class _Cutter(Generic[Item]):
    """Cuts ranges of items into two columns of numbers: what a process does."""

    items: StoredSequence[Item]
    cut: Callable[[Item], tuple[Sequence[int], Sequence[int]]]
    kind: np.dtype[np.unsignedinteger]

    def __call__(self, block: list[range]) -> tuple[bytes, bytes]:
        ids, lengths = array("I"), array("q")
        for numbers in block:
            for item in self.items.take(numbers):
                for found in self.cut(item):
                    ids.extend(found)
                    lengths.append(len(found))
        return np.asarray(ids).astype(self.kind).tobytes(), lengths.tobytes()
