"""Stores of rows: what is written is read, and what is not whole is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpora import store as stores
from regard.corpora.store import (
    ENDS,
    HEADER,
    VALUES,
    RowStore,
    RowWriter,
    StoredRow,
    StoredSequence,
    StoreError,
    type_of,
)

ROWS = [([1, 2, 3], [4]), ([], [5, 6]), ([7], []), ([8, 9], [10, 11, 12])]


def write(folder: Path, rows: list[tuple[list[int], list[int]]], *, width: int = 2) -> Path:
    folder.mkdir()
    with RowWriter(folder, columns=2, width=width) as writer:
        for row in rows:  # in blocks of one row
            values = np.array([*row[0], *row[1]], type_of(width))
            writer.add(values.tobytes(), np.array([[len(side) for side in row]], np.int64))
        writer.finish({"what": "a test"})
    return folder


def read(rows: list[StoredRow]) -> list[tuple[list[int], list[int]]]:
    return [(row[0].tolist(), row[1].tolist()) for row in rows]


class Sums(StoredSequence[int]):
    def _item(self, row: StoredRow) -> int:
        return sum(int(side.sum()) for side in row)


@settings(deadline=None, max_examples=25)
@given(
    rows=st.lists(
        st.tuples(
            st.lists(st.integers(0, 255), max_size=5), st.lists(st.integers(0, 255), max_size=5)
        ),
        min_size=1,
        max_size=20,
    ),
    width=st.sampled_from(stores.WIDTHS),
    mapped=st.sampled_from([1, 3, 1000]),
)
def test_rows_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[list[int], list[int]]],
    width: int,
    mapped: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "ROWS_A_MAPPING", mapped)
        store = RowStore(write(tmp_path_factory.mktemp("a") / "store", rows, width=width))
        order = np.arange(len(rows))[::-1]
        assert read(store.take(order)) == rows[::-1]
        assert store.lengths().tolist() == [[len(a), len(b)] for a, b in rows]
        assert store.made_of == {"what": "a test"}


def test_long_rows_have_wider_lengths(tmp_path: Path) -> None:
    store = RowStore(write(tmp_path / "store", [([1] * 70_000, [2]), ([3], [4])], width=1))
    assert store.lengths().tolist() == [[70_000, 1], [1, 1]]


def test_a_sequence_leaves_rows_out(tmp_path: Path) -> None:
    sums = Sums(RowStore(write(tmp_path / "store", ROWS)))
    assert (len(sums), list(sums), sums[-1], sums[1:3]) == (4, [10, 11, 7, 50], 50, [11, 7])
    fewer = sums.without(np.array([1]))
    assert (len(fewer), list(fewer), fewer[1]) == (3, [10, 7, 50], 7)
    assert list(fewer.without(np.array([0, 2]))) == [7]
    assert fewer.take([2, 0]) == [50, 10]
    with pytest.raises(IndexError):
        fewer[3]
    with pytest.raises(IndexError, match="no row 4"):
        fewer.store.take(np.array([4]))


def changed(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return damage


def header(**values: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        found = json.loads((folder / HEADER).read_text())
        (folder / HEADER).write_text(json.dumps({**found, **values}))

    return damage


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (changed(VALUES, lambda old: old[:-2]), "values has 22 bytes instead of 24"),
        (changed(ENDS, lambda old: old + b"x"), "ends has 65 bytes instead of 64"),
        (changed(VALUES, lambda old: b"\1" + old[1:]), None),  # as it was
        (changed(VALUES, lambda old: b"\2" + old[1:]), "values does not match its checksum"),
        (changed(ENDS, lambda old: b"\2" + old[1:]), "ends does not match its checksum"),
        (changed(HEADER, lambda old: old[:30]), "store.json is missing or damaged"),
        (changed(HEADER, lambda old: b"[]"), "does not describe a store"),
        (lambda folder: (folder / HEADER).unlink(), "store.json is missing"),
        (lambda folder: (folder / VALUES).unlink(), "values is missing"),
        (header(version=99), "it has version 99 instead of 1"),
        (header(width=3), "does not describe a store"),
        (header(rows=-1), "does not describe a store"),
        (header(rows=1 << 50), "ends has 64 bytes instead of 18,014,398,509,481,984"),
        (header(rows=1 << 60), "does not describe a store"),
        (header(checksums=["x"]), "has no checksums"),
        (header(made_of=None), "does not say what it was made of"),
    ],
)
def test_what_is_not_whole_is_refused(
    tmp_path: Path, damage: Callable[[Path], None], problem: str | None
) -> None:
    folder = write(tmp_path / "store", ROWS)
    damage(folder)
    if problem is None:
        assert len(RowStore(folder)) == 4
        return
    with pytest.raises(StoreError, match=problem) as caught:
        RowStore(folder)
    assert "Delete this folder" in str(caught.value)


def test_a_forged_store_reads_nothing_beyond_its_numbers(tmp_path: Path) -> None:
    folder = write(tmp_path / "store", ROWS)
    ends = np.fromfile(folder / ENDS, "<u8")
    ends[1] = 1 << 62
    ends.tofile(folder / ENDS)
    header(checksums=[*checksums(folder)])(folder)
    store = RowStore(folder)
    for read in (lambda: store.take(np.array([0])), store.lengths):
        with pytest.raises(StoreError, match="a row has no place"):
            read()


def checksums(folder: Path) -> list[str]:
    from regard.base.files import fingerprint

    return [fingerprint([folder / name]) for name in (VALUES, ENDS)]


def test_a_store_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    store = RowStore(write(tmp_path / "store", ROWS))
    with (store.folder / VALUES).open("r+b") as file:
        file.truncate(3)
    with pytest.raises(StoreError, match="cut short while it was read"):
        store.take(np.array([3]))


def test_a_store_that_is_replaced_is_read_to_its_end(tmp_path: Path) -> None:
    store = RowStore(write(tmp_path / "store", ROWS))
    for path in store.folder.iterdir():
        path.unlink()
    assert read(store.take(np.array([2, 0]))) == [ROWS[2], ROWS[0]]
    store.close()
