"""Lines of a file or pipe of any size, read in windows; it knows how far it is, and what it saw."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from regard.base.errors import DataError
from regard.corpora.lines import (
    BYTE_ORDER_MARK,
    SENTENCES,
    decoded_line,
    empty_file,
    open_text,
    reading,
)

LONGEST_LINE = 16 * 2**20
WINDOW_BYTES = 8 * 2**20
BLOCK = 2**20


class Line(NamedTuple):
    """A line with its number, counted from 1, and with its line end: none, "\\n" or "\\r\\n"."""

    number: int
    text: str
    end: str


@dataclass(frozen=True)
class Position:
    """How far a text has been read, and a digest of all that was read."""

    lines: int
    offset: int
    digest: str


class LineStream:
    """Reads lines in windows; memory depends on the window, not on the file."""

    def __init__(self, file: io.BufferedIOBase, *, path: Path):
        self._file = file
        self._path = path
        self._start()

    def _start(self) -> None:
        self._lines = 0
        self._offset = 0
        self._digest = hashlib.blake2b(digest_size=16)

    def window(self, lines: int) -> list[Line]:
        """Return the next lines, fewer if they are long or the end is near; none at the end."""
        window: list[Line] = []
        first = self._offset == 0
        end = self._offset + WINDOW_BYTES
        while len(window) < lines and self._offset < end:
            with reading(self._path, expected=SENTENCES):
                raw = self._file.readline(LONGEST_LINE + 1)
            if not raw:
                if first and [line.text for line in window] in ([], [""]):
                    raise empty_file(self._path, expected=SENTENCES)
                break
            window.append(self._line(raw))
        return window

    @property
    def position(self) -> Position:
        """How far the reading is."""
        return Position(self._lines, self._offset, self._digest.hexdigest())

    @property
    def share(self) -> float | None:
        """The share of the file that has been read; None of a pipe, which has no size."""
        if not self.rereadable:
            return None
        raw: Any = self._file.fileobj if isinstance(self._file, gzip.GzipFile) else self._file
        size = os.fstat(raw.fileno()).st_size
        return min(1.0, raw.tell() / size) if size else 1.0

    @property
    def rereadable(self) -> bool:
        """Whether this is a file on a disk, which can be read again, and no pipe."""
        try:
            return stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        except OSError:  # a file in memory
            return False

    def rewind(self) -> None:
        """Go back to the beginning."""
        self._file.seek(0)
        self._start()

    def skip(self, position: Position) -> bool:
        """Read up to a position of before; False if the text up to there is another one."""
        while self._offset < position.offset:
            with reading(self._path, expected=SENTENCES):
                block = self._file.read(min(BLOCK, position.offset - self._offset))
            if not block:
                return False
            self._offset += len(block)
            self._digest.update(block)
        self._lines = position.lines
        return self.position == position

    def _line(self, raw: bytes) -> Line:
        self._lines += 1
        if len(raw) > LONGEST_LINE:
            raise DataError(
                f"the line is longer than {LONGEST_LINE // 2**20} MB",
                path=self._path,
                line=self._lines,
                remedy="Is this a text file? It should hold one sentence a line.",
            )
        self._offset += len(raw)
        self._digest.update(raw)
        text = raw.removesuffix(b"\n")
        if text != raw:
            text = text.removesuffix(b"\r")
        end = raw[len(text) :].decode()
        if self._lines == 1:
            text = text.removeprefix(BYTE_ORDER_MARK)
        return Line(self._lines, decoded_line(text, self._path, self._lines), end)


@contextmanager
def open_stream(path: Path) -> Iterator[LineStream]:
    """Open a file, plain or gzip, or a pipe."""
    with ExitStack() as stack:
        with reading(path, expected=SENTENCES):
            file = stack.enter_context(open_text(path))
        yield LineStream(file, path=path)
