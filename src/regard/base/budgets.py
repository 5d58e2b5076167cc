"""Budgets for input that may come from strangers: bytes, expansion, depth, items and seconds.

They are generous, so that no honest file meets them, and final: what exceeds one is refused with a
message instead of taking all memory or a day. Readers that hold a whole file in memory count what
they read with a `Meter`; JSON, TOML, zip archives and pipes have a function each.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import sys
import threading
import time
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from regard.base.errors import DataError

MEGABYTE = 1 << 20
# Bytes that one item of a parsed document (a tag, a text, a cell) takes in memory.
ITEM_BYTES = 400
# What may be unpacked from the smallest archive: lists of zeros and toy corpora shrink well.
FREE_BYTES = 64 * MEGABYTE
PIPE_SECONDS = 30.0
SHOWN = 60


@cache
def machine_memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or its container's."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on Windows
        found = 8 << 30
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        limit = ""
    return min(found, int(limit)) if limit.isdecimal() else found


@dataclass(frozen=True)
class Budget:
    """The most that one input may take; the defaults leave three quarters of the memory free."""

    bytes: int | None = None
    """Bytes in memory, unpacked; None: a quarter of the memory."""
    items: int | None = None
    """Parts of a parsed document, or members of an archive; None: as many as fit into that."""
    depth: int = 200
    """Levels of nesting."""
    expansion: int = 300
    """Bytes unpacked from one byte of the file, beyond `FREE_BYTES`."""
    seconds: float = 60.0
    """Time for the first megabyte."""
    seconds_per_megabyte: float = 10.0
    """Time for each further megabyte."""


GENEROUS = Budget()


# For readers that hold no more than a line in memory: files of any size, but no gzip bombs.
STREAMED = Budget(bytes=sys.maxsize, items=sys.maxsize, seconds=math.inf)


class Meter:
    """Counts what one input takes, and refuses it with a DataError when its budget is used up.

    `packed` is the size of a file that is unpacked while it is read.
    """

    def __init__(self, path: Path, budget: Budget = GENEROUS, *, packed: int | None = None):
        share = machine_memory() // 4
        self._path = path
        self._budget = budget
        self._most_bytes = share if budget.bytes is None else budget.bytes
        self._most_items = share // ITEM_BYTES if budget.items is None else budget.items
        self._packed = packed
        self._begun = time.monotonic()
        self._bytes = self._items = self._depth = 0

    def take(self, *, items: int = 0, bytes: int = 0) -> None:
        """Count some more."""
        self._items += items
        self._bytes += bytes
        if self._bytes > self._most_bytes:
            raise self._refused(f"it takes more than {self._most_bytes // MEGABYTE:,} MB")
        if self._items > self._most_items:
            raise self._refused(f"it has more than {self._most_items:,} parts")
        if (
            self._packed is not None
            and self._bytes > FREE_BYTES + self._budget.expansion * self._packed
        ):
            raise self._refused(f"{self._packed:,} bytes unpack to more than {self._bytes - 1:,}")
        if not self._items % 1024:
            self.look_at_the_clock()

    def look_at_the_clock(self) -> None:
        """Refuse an input that takes far longer than one of its size should."""
        allowed = self._budget.seconds
        allowed += self._budget.seconds_per_megabyte * self._bytes / MEGABYTE
        if time.monotonic() - self._begun > allowed:
            raise self._refused(f"reading it takes longer than {allowed:.0f} seconds")

    def enter(self) -> None:
        """Count one more level of nesting."""
        self._depth += 1
        if self._depth > self._budget.depth:
            raise self._refused(f"it is nested more than {self._budget.depth} levels deep")

    def leave(self) -> None:
        """Count one level less."""
        self._depth -= 1

    def _refused(self, problem: str) -> DataError:
        return DataError(
            f"the file is refused: {problem}",
            path=self._path,
            remedy="Split it into smaller files, or check where it comes from.",
        )


def require_small_archive(
    archive: zipfile.ZipFile, *, path: Path, budget: Budget = GENEROUS
) -> None:
    """Refuse a zip archive whose members are too many, too large or packed too densely.

    The sizes are those that the archive declares; zipfile never unpacks more of a member.
    """
    members = archive.infolist()
    packed = path.stat().st_size if path.is_file() else sum(one.compress_size for one in members)
    meter = Meter(path, budget, packed=packed)
    for member in members:
        meter.take(items=1, bytes=member.file_size)


@contextmanager
def open_input(path: Path) -> Iterator[BinaryIO]:
    """Open a file or pipe for reading; a pipe without a writer is an error, and so is a device."""
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        _require_terminal(path)
    if not stat.S_ISFIFO(mode):
        with path.open("rb") as file:
            yield file
        return
    opened: list[BinaryIO | OSError] = []

    def wait() -> None:
        try:
            opened.append(path.open("rb"))  # returns when somebody opens the pipe for writing
        except OSError as error:
            opened.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(PIPE_SECONDS)
    if not opened:
        with suppress(OSError):  # lets the thread go on, which then closes the pipe
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        thread.join(PIPE_SECONDS)
        for one in opened:
            if not isinstance(one, OSError):
                one.close()
        raise DataError(
            f"nothing was written to this pipe within {PIPE_SECONDS:g} seconds",
            path=path,
            remedy="Start the program that writes to it, or name a file.",
        )
    if isinstance(opened[0], OSError):
        raise opened[0]
    pipe = opened[0]
    with pipe:
        yield pipe


def _require_terminal(path: Path) -> None:
    """Refuse a device that has no end, as /dev/zero; a terminal or /dev/null has one."""
    if path.stat().st_rdev == Path(os.devnull).stat().st_rdev:
        return
    with path.open("rb", buffering=0) as device:
        if not device.isatty():
            raise DataError("this is a device, not a file", path=path, remedy="Name a file.")


def parse_json(text: str | bytes) -> Any:
    """Return a JSON value; whatever is wrong with the text is a ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


STRINGS_AND_COMMENTS = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)|\'\'\'.*?(?:\'\'\'|\Z)|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*',
    re.DOTALL,
)
TOML_BYTES = MEGABYTE
TOML_DEPTH = 32


def parse_toml(text: str) -> dict[str, Any]:
    """Return a TOML table; whatever is wrong with the text is a ValueError.

    The time of Python's parser grows with the square of the depth of keys and tables.
    """
    if len(text) > TOML_BYTES:
        raise ValueError(f"it has more than {TOML_BYTES:,} characters")
    bare = STRINGS_AND_COMMENTS.sub("s", text)
    depth = 0
    for mark in re.findall(r"[\[\]{}]", bare):
        depth = max(0, depth + (1 if mark in "[{" else -1))
        if depth > TOML_DEPTH:
            raise ValueError(f"it is nested more than {TOML_DEPTH} levels deep")
    if any(part.count(".") > TOML_DEPTH for part in re.split(r"[=,{}\[\]\n]", bare)):
        raise ValueError(f"a key has more than {TOML_DEPTH} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def shown(value: object) -> str:
    """Return a value for a message: its repr, shortened; a huge number gives its size."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python refuses to write a number of 5,000 digits
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
