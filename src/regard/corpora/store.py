"""Rows of numbers in mapped files: texts as bytes and sentences as token ids, more than memory has.

A store is a folder of three files: `values`, all numbers of all rows one after the other; `ends`,
where each column of each row ends among them; and `store.json`, which says how wide the numbers
are, how many rows there are, of what they were made, and the checksums.
"""

from __future__ import annotations

import mmap
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar, overload
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RunError
from regard.base.files import Fingerprint, fingerprint, read_json, write_json

# As many rows as are kept in memory; a corpus of more becomes a store.
MOST_IN_MEMORY = 100_000
VERSION = 1
VALUES, ENDS, HEADER = "values", "ends", "store.json"
WIDTHS = (1, 2, 4)  # bytes of a number
END_BYTES = 8
MOST = 1 << 56  # of anything in a store; a forged one may name more
BLOCK_ROWS = 4_096
# A file is mapped anew after so many rows: every page that was read counts as memory of this
# process for as long as the mapping is there, and a row far from the others brings 16 pages along.
ROWS_A_MAPPING = 256

Item = TypeVar("Item")
StoredRow = list[NDArray[np.unsignedinteger]]


class StoreError(RunError):
    """A store that is damaged, cut short or of another kind; it can always be made again."""

    def __init__(self, folder: Path, problem: str):
        self.problem = problem
        super().__init__(
            f"{folder} is damaged ({problem}). Delete this folder, and give the command again: it "
            "is made again from the data."
        )


def type_of(width: int) -> np.dtype[np.unsignedinteger]:
    """Return the type of numbers of so many bytes; the first byte is the lowest."""
    return np.dtype(f"<u{width}")


class RowWriter:
    """Writes a store into an empty folder; the description comes last."""

    def __init__(self, folder: Path, *, columns: int, width: int):
        self._folder = folder
        self._columns = columns
        self._width = width
        self._files: list[BinaryIO] = [(folder / name).open("wb") for name in (VALUES, ENDS)]
        self._digests = Fingerprint(), Fingerprint()
        self._rows = self._values = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, values: bytes, lengths: NDArray[np.int64]) -> None:
        """Add rows: their numbers one after the other, and their lengths as [rows, columns]."""
        ends = self._values + np.cumsum(lengths, dtype="<u8")
        for file, digest, part in zip(
            self._files, self._digests, (values, ends.tobytes()), strict=True
        ):
            file.write(part)
            digest.add(part)
        self._rows += len(lengths)
        self._values += len(values) // self._width

    def add_texts(self, texts: Sequence[str]) -> None:
        """Add rows of texts as UTF-8, given one after the other."""
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.array([len(part) for part in parts], np.int64)
        self.add(b"".join(parts), lengths.reshape(-1, self._columns))

    def finish(self, made_of: Mapping[str, Any]) -> None:
        """Write the description, with what the rows were made of."""
        for file in self._files:
            file.close()
        header = {
            "version": VERSION,
            "columns": self._columns,
            "width": self._width,
            "rows": self._rows,
            "values": self._values,
            "checksums": [digest.value for digest in self._digests],
            "made_of": dict(made_of),
        }
        write_json(self._folder / HEADER, header, indent=None)

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for file in self._files:
            file.close()


class RowStore:
    """The rows that a `RowWriter` wrote, read from mapped files; nothing of it is trusted.

    The files stay open, so that a store which another process replaces is read to its end.
    """

    def __init__(self, folder: Path):
        """Open a store; raise StoreError if it is not whole."""
        self.folder = folder
        header = _header(folder)
        self.columns: int = header["columns"]
        self.width: int = header["width"]
        self.made_of: dict[str, Any] = header["made_of"]
        self._rows: int = header["rows"]
        self._values: int = header["values"]
        self._sizes = self._values * self.width, self._rows * self.columns * END_BYTES
        paths = [folder / name for name in (VALUES, ENDS)]
        for path, size in zip(paths, self._sizes, strict=True):
            found = path.stat().st_size if path.is_file() else -1
            if found != size:
                there = "is missing" if found < 0 else f"has {found:,} bytes instead of {size:,}"
                raise StoreError(folder, f"{path.name} {there}")
        for path, checksum in zip(paths, header["checksums"], strict=True):
            if fingerprint([path]) != checksum:
                raise StoreError(folder, f"{path.name} does not match its checksum")
        self._files = [path.open("rb") for path in paths]
        self._closed = finalize(self, _close, self._files)
        self._read = ROWS_A_MAPPING
        self._mapped: list[memoryview] = []

    def __len__(self) -> int:
        return self._rows

    def close(self) -> None:
        """Close the files; otherwise they are closed when the store is no longer used."""
        self._mapped = []
        self._closed()

    def describe(self, made_of: Mapping[str, Any]) -> None:
        """Record something else about what the rows were made of."""
        header = {**_header(self.folder), "made_of": dict(made_of)}
        write_json(self.folder / HEADER, header, indent=None)

    def take(self, rows: NDArray[np.int64]) -> list[StoredRow]:
        """Return the columns of these rows; the arrays are copies."""
        found: list[StoredRow] = []
        for first in range(0, len(rows), ROWS_A_MAPPING):
            found += self._take(rows[first : first + ROWS_A_MAPPING])
        return found

    def _take(self, rows: NDArray[np.int64]) -> Iterator[StoredRow]:
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < self._rows:
            raise IndexError(f"a store of {self._rows} rows has no row {int(rows.max())}")
        values, ends = self._views(len(rows))
        places = np.frombuffer(ends, dtype="<u8")
        columns = np.arange(-1, self.columns)
        bounds = np.maximum(rows[:, None] * self.columns + columns, 0)
        limits = places[bounds].astype(np.int64)
        limits[rows == 0, 0] = 0
        if (np.diff(limits) < 0).any() or (len(limits) and int(limits.max()) > self._values):
            raise StoreError(self.folder, "a row has no place")
        numbers = np.frombuffer(values, dtype=type_of(self.width))
        for row in limits.tolist():
            yield [numbers[row[c] : row[c + 1]].copy() for c in range(self.columns)]

    def texts(self, row: StoredRow) -> list[str]:
        """Return the columns of a row as the texts that they hold."""
        try:
            return [str(column.tobytes(), "utf-8", "surrogatepass") for column in row]
        except UnicodeDecodeError:
            raise StoreError(self.folder, "a text is not UTF-8") from None

    def lengths(self) -> NDArray[np.unsignedinteger]:
        """Return how many numbers each column of each row has, in the narrowest type."""
        step = BLOCK_ROWS * 64
        lengths = np.empty((self._rows, self.columns), dtype=np.uint16)
        for first in range(0, self._rows, step):
            ends = self._ends(first, min(first + step, self._rows))
            part = np.diff(ends)
            if (part < 0).any():
                raise StoreError(self.folder, "a row has no place")
            if len(part) and int(part.max()) > np.iinfo(lengths.dtype).max:
                lengths = lengths.astype(np.uint32)
            lengths[first : first + step] = part.reshape(-1, self.columns)
        return lengths

    def _ends(self, first: int, last: int) -> NDArray[np.int64]:
        """Return where columns end, from the one before a row to the last one of another row."""
        file, begin = self._files[1], first * self.columns
        file.seek(max(0, begin - 1) * END_BYTES)
        read = file.read((last * self.columns - max(0, begin - 1)) * END_BYTES)
        ends = np.frombuffer(read, dtype="<u8").astype(np.int64)
        return ends if begin else np.concatenate([np.zeros(1, np.int64), ends])

    def _views(self, rows: int) -> list[memoryview]:
        """Return the bytes of values and ends, mapped anew from time to time."""
        self._read += rows
        if self._read > ROWS_A_MAPPING:
            self._read = rows
            self._mapped = []
            try:
                self._mapped = [
                    memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
                    if size
                    else memoryview(b"")
                    for file, size in zip(self._files, self._sizes, strict=True)
                ]
            except ValueError:
                raise StoreError(self.folder, "it was cut short while it was read") from None
        return self._mapped


def _close(files: Sequence[BinaryIO]) -> None:
    for file in files:
        file.close()


def _header(folder: Path) -> dict[str, Any]:
    """Return the description of a store; everything in it is checked."""
    try:
        found: Any = read_json(folder / HEADER, owner="store")
    except RunError:
        raise StoreError(folder, f"{HEADER} is missing or damaged") from None
    whole = isinstance(found, dict) and all(
        type(found.get(name)) is int and 0 <= found[name] < MOST
        for name in ("version", "columns", "width", "rows", "values")
    )
    if not whole or found["width"] not in WIDTHS or not 1 <= found["columns"] <= len(WIDTHS):
        raise StoreError(folder, f"{HEADER} does not describe a store")
    if found["version"] != VERSION:
        raise StoreError(folder, f"it has version {found['version']} instead of {VERSION}")
    checksums = found.get("checksums")
    if not isinstance(checksums, list) or len(checksums) != 2:
        raise StoreError(folder, f"{HEADER} has no checksums")
    if not isinstance(found.get("made_of"), dict):
        raise StoreError(folder, f"{HEADER} does not say what it was made of")
    header: dict[str, Any] = found
    return header


class StoredSequence(Sequence[Item]):
    """The rows of a store in their order, some left out; items are read when they are asked for."""

    def __init__(self, store: RowStore, without: NDArray[np.int64] | None = None):
        """Read a store; `without` are the rows to leave out, in ascending order."""
        self.store = store
        self._without = np.empty(0, np.int64) if without is None else without
        self._before = self._without - np.arange(len(self._without))

    @abstractmethod
    def _item(self, row: StoredRow) -> Item:
        """Return what a row of the store stands for."""

    def __len__(self) -> int:
        return len(self.store) - len(self._without)

    def take(self, numbers: Sequence[int] | NDArray[np.int64]) -> list[Item]:
        """Return the items of these numbers, in this order."""
        return [self._item(row) for row in self.store.take(self._rows(numbers))]

    def lengths(self) -> NDArray[np.unsignedinteger]:
        """Return how many numbers each column of each item has."""
        found = self.store.lengths()
        return np.delete(found, self._without, axis=0) if len(self._without) else found

    def without(self, numbers: NDArray[np.int64]) -> StoredSequence[Item]:
        """Return the sequence without the items of these numbers."""
        rows = np.concatenate([self._without, self._rows(numbers)])
        return type(self)(self.store, np.sort(rows))

    def _rows(self, numbers: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        wanted = np.asarray(numbers, dtype=np.int64)
        return wanted + np.searchsorted(self._before, wanted, side="right")

    @overload
    def __getitem__(self, place: int) -> Item: ...

    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...

    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        """Return one item, or those of a slice as a list."""
        numbers = range(len(self))[place]
        return self.take([numbers])[0] if isinstance(numbers, int) else self.take(numbers)

    def __iter__(self) -> Iterator[Item]:
        for first in range(0, len(self), BLOCK_ROWS):
            yield from self.take(range(first, min(first + BLOCK_ROWS, len(self))))
