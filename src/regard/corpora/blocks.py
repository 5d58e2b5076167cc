"""Corpora of any size in blocks: worker processes, digests of what was seen, resumable output."""

from __future__ import annotations

import os
import shutil
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RunError, SettingsError
from regard.base.files import read_json, write_json
from regard.corpora.sources import languages_of

BLOCK_ROWS = 5_000
MOST_PROCESSES = 8
COMMIT_SECONDS = 10.0

Digests = NDArray[np.uint64]
Row = TypeVar("Row")
Result = TypeVar("Result")


def in_blocks(rows: Iterable[Row], *, size: int | None = None) -> Iterator[list[Row]]:
    """Yield the rows in lists of this size, `BLOCK_ROWS` by default; the last may be shorter."""
    stream = iter(rows)
    while block := list(islice(stream, size or BLOCK_ROWS)):
        yield block


def default_processes() -> int:
    """Return how many processes can work at once on this machine."""
    if sys.platform != "linux":
        return 1
    return min(MOST_PROCESSES, len(os.sched_getaffinity(0)))


def mapped(
    work: Callable[[list[Row]], Result],
    blocks: Iterable[list[Row]],
    *,
    processes: int | None = None,
) -> Iterator[tuple[list[Row], Result]]:
    """Yield each block with the result of some work on it, in their order.

    The work is shared by worker processes if there are several blocks. It is a pure function: what
    a lost worker has not returned is computed here.
    """
    stream = iter(blocks)
    first = list(islice(stream, 2))
    count = default_processes() if processes is None else processes
    if len(first) < 2 or count < 2 or sys.platform != "linux":
        for block in chain(first, stream):
            yield block, work(block)
        return
    from regard.compute.processes import WorkerLostError, WorkerProcess  # imports torch

    workers = [WorkerProcess(work) for _ in range(count)]
    waiting: list[tuple[WorkerProcess | None, list[Row]]] = []

    def give(worker: WorkerProcess, block: list[Row]) -> None:
        try:
            worker.send(block)
            waiting.append((worker, block))
        except WorkerLostError:
            waiting.append((None, block))

    try:
        rest = chain(first, stream)
        for worker, block in zip(workers, rest, strict=False):
            give(worker, block)
        while waiting:
            owner, block = waiting.pop(0)
            try:
                result = work(block) if owner is None else owner.receive()
            except WorkerLostError:
                owner, result = None, work(block)
            following = next(rest, None)
            if following is not None:
                give(owner, following) if owner else waiting.append((None, following))
            yield block, result
    finally:
        for worker in workers:
            worker.stop()


def digest(text: str) -> int:
    """Return 8 bytes that stand for a text, as a number."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def digests_of(texts: Iterable[str]) -> Digests:
    """Return the digests of texts."""
    return np.frombuffer(array("Q", map(digest, texts)), dtype=np.uint64)


class DigestSet:
    """A set of digests in 8 bytes each: sorted runs, which are merged as they grow."""

    def __init__(self, known: Digests | None = None):
        self._runs: list[Digests] = [] if known is None or not len(known) else [np.unique(known)]

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, digests: Digests) -> NDArray[np.bool_]:
        """Add digests and return which of them are new; of equal ones, the first."""
        new = np.zeros(len(digests), dtype=bool)
        new[np.unique(digests, return_index=True)[1]] = True
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, digests), len(run) - 1)
            new &= run[places] != digests
        if new.any():
            self._runs.append(np.sort(digests[new]))
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]), kind="stable")
        return new


class ResumableOutput:
    """Files that are written in a hidden folder next to them and moved when they are whole.

    `job` describes what is written and from what. A job that was stopped goes on from its last
    commit: its files are cut there, and `state` is what the commit was given. A folder of another
    job is removed.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        job: Mapping[str, Any],
        temporary: Sequence[str] = (),
        seconds: float | None = None,
    ):
        """Open the files; the `temporary` ones belong to the job and are removed at its end."""
        for path in paths:
            if path.exists():
                raise RunError(f"{path} exists already: choose another name with --out.")
            if not path.parent.is_dir():
                raise RunError(f"Cannot write {path}: there is no folder {path.parent}.")
        self._paths = list(paths)
        self._folder = paths[0].with_name(f".{paths[0].name}.partial")
        self._job = dict(job)
        self._seconds = COMMIT_SECONDS if seconds is None else seconds
        self._due = time.monotonic() + self._seconds
        self.state: dict[str, Any] = {}
        names = [*(path.name for path in paths), *temporary]
        sizes = self._resumed(names)
        self.files: dict[str, BinaryIO] = {}
        for name in names:
            file = (self._folder / name).open("r+b" if sizes else "wb")
            file.truncate(sizes.get(name, 0))
            file.seek(0, os.SEEK_END)
            self.files[name] = file

    def _resumed(self, names: Sequence[str]) -> dict[str, int]:
        """Read the last commit and return how long each file was; empty to begin anew."""
        notes = self._folder / "progress.json"
        if notes.is_file():
            known: Any = read_json(notes, owner="job")
            # What is damaged is begun anew.
            with suppress(KeyError, TypeError, ValueError, AttributeError, FileNotFoundError):
                sizes: dict[str, int] = known["sizes"]
                whole = sorted(sizes) == sorted(names) and all(
                    0 <= size <= (self._folder / name).stat().st_size
                    for name, size in sizes.items()
                )
                if known["job"] == self._job and whole:
                    self.state = dict(known["state"])
                    return sizes
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        return {}

    def write(self, columns: Sequence[str], *, paths: Sequence[Path] | None = None) -> None:
        """Write a pair as a row of a table, or its sides to two line files."""
        names = [path.name for path in paths or self._paths]
        if len(names) == 1:
            row = "\t".join(side.replace("\t", " ") for side in columns)
            self.files[names[0]].write(f"{row}\n".encode("utf-8", "surrogatepass"))
            return
        for name, side in zip(names, columns, strict=True):
            self.files[name].write(f"{side}\n".encode("utf-8", "surrogatepass"))

    def read(self, name: str) -> bytes:
        """Return what a file holds since the last commit of the job before."""
        return (self._folder / name).read_bytes()

    def commit(self, state: Callable[[], Mapping[str, Any]], *, now: bool = False) -> None:
        """Make what is written safe, with the state to go on from, if some time has passed."""
        if not now and time.monotonic() < self._due:
            return
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())
        sizes = {name: file.tell() for name, file in self.files.items()}
        notes = {"job": self._job, "sizes": sizes, "state": dict(state())}
        write_json(self._folder / "progress.json", notes, indent=None)
        self._due = time.monotonic() + self._seconds

    def __enter__(self) -> ResumableOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        if kind is None:
            for path in self._paths:
                (self._folder / path.name).replace(path)
            shutil.rmtree(self._folder)


def output_files(out: Path, pair: str | None) -> list[Path]:
    """Return the files of an output: a TSV file, or two line files that end in the languages."""
    if out.suffix == ".tsv":
        return [out]
    if pair is None:
        raise SettingsError(
            f"--out {out}: name a .tsv file, or give the languages with --pair en-de for two files."
        )
    return [out.with_name(f"{out.name}.{code}") for code in languages_of(pair)]


def state_of(paths: Iterable[Path]) -> list[list[str | int]]:
    """Return name, size and time of files, which tell whether they were changed."""
    found: list[list[str | int]] = []
    for path in paths:
        if not path.exists():  # which its reader says better
            continue
        status = path.stat()
        found.append([str(path.resolve()), status.st_size, status.st_mtime_ns])
    return found
