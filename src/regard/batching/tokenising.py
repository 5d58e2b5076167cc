"""Training examples in a store: pairs cut into tokens once, by several processes."""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.base.files import whole_folder
from regard.base.protocols import Tokenizer
from regard.batching.batch import Example, TrainingExamples
from regard.corpora.blocks import mapped
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
    lengths = store.lengths()
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
    """Cut the pairs into tokens, in several processes, and return the store that holds them.

    The store does not depend on the number of processes. After a failure nothing of it is left.
    """
    width = 2 if max(one.size for one in tokenizers) <= NARROW else 4
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)  # of other data
    folder.parent.mkdir(parents=True, exist_ok=True)
    cut = _Cutter(pairs, tokenizers, width)
    with whole_folder(folder) as temporary, RowWriter(temporary, columns=2, width=width) as writer:
        for _, (ids, lengths) in mapped(cut, _blocks(len(pairs)), processes=processes):
            writer.add(ids, np.frombuffer(lengths, np.int64).reshape(-1, 2))
            watch(len(writer), len(writer) / len(pairs))
        writer.finish(made_of)
    return RowStore(folder)


def _blocks(rows: int) -> Iterator[list[range]]:
    for first in range(0, rows, BLOCK_PAIRS):
        yield [range(first, min(first + BLOCK_PAIRS, rows))]


@dataclass(frozen=True)
class _Cutter:
    """Cuts ranges of pairs into tokens: what a process does."""

    pairs: StoredSequence[SentencePair]
    tokenizers: tuple[Tokenizer, Tokenizer]
    width: int

    def __call__(self, block: list[range]) -> tuple[bytes, bytes]:
        ids, lengths = array("I"), array("q")
        source, target = self.tokenizers
        for numbers in block:
            for pair in self.pairs.take(numbers):
                for found in (source.encode(pair.source), target.encode(pair.target)):
                    ids.extend(found)
                    lengths.append(len(found))
        return np.asarray(ids).astype(type_of(self.width)).tobytes(), lengths.tobytes()
