"""Readers of lines, plain, gzip or zstd: a whole file, or windows of a file or pipe of any size."""

import csv
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from regard.base.budgets import GENEROUS, MEGABYTE, STREAMED, Budget, Meter, open_input
from regard.base.errors import DataError, SettingsError
from regard.base.files import Fingerprint

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
GZIP_MARK, ZSTD_MARK = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
PACKED = (".gz", ".zst")  # endings of compressed files
SENTENCES = "one sentence per line"
LONGEST_LINE = 16 * MEGABYTE  # of what is translated line by line
LONGEST_TEXT = 512 * MEGABYTE  # of a corpus: some are a single line
LINE_BYTES = 50  # that a line takes in memory besides its text
WINDOW_BYTES = 8 * MEGABYTE
BLOCK = MEGABYTE


def read_lines(path: Path, *, expected: str = SENTENCES) -> list[str]:
    """Return the lines of a UTF-8 file without their line ends; spacing is not changed.

    The file may be compressed with gzip, end its lines with "\\r\\n" and begin with a byte order
    mark. The last line may lack its newline. Errors say that the file should hold `expected`.
    """
    return _checked(_raw_lines(path, expected, GENEROUS), path, expected)


def stream_lines(path: Path, *, expected: str) -> Iterator[str]:
    """Yield the lines of a file of any size, as `read_lines` returns them.

    An empty file has no lines.
    """
    for number, line in enumerate(_raw_lines(path, expected, STREAMED), 1):
        yield decoded_line(line, path, number)


def csv_rows(
    lines: Iterable[str], *, separator: str, path: Path, spaced: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of CSV lines with their line numbers; with `spaced`, spaces may lead cells."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=spaced)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise DataError(
            f"this is not CSV ({str(error).partition(' - ')[0]})",
            path=path,
            line=reader.line_num,
            remedy="Lines should end in a newline and quotes be closed: save it again as CSV.",
        ) from None


def decode_lines(content: bytes, *, path: Path) -> list[str]:
    """Return the lines of a text that was read from `path`, which errors name."""
    return _checked(_cleaned(io.BytesIO(content)), path, SENTENCES)


def _checked(raw_lines: Iterable[bytes], path: Path, expected: str) -> list[str]:
    """Return the lines as text; refuse a file without any."""
    lines = [decoded_line(line, path, number) for number, line in enumerate(raw_lines, 1)]
    if lines in ([], [""]):
        raise empty_file(path, expected=expected)
    return lines


def empty_file(path: Path, *, expected: str) -> DataError:
    """Return the error for a file without text."""
    return DataError("the file is empty", path=path, remedy=f"It should hold {expected}.")


def _cleaned(raw_lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without line ends and byte order mark."""
    for number, line in enumerate(raw_lines):
        start = BYTE_ORDER_MARK if number == 0 else b""
        yield line.removesuffix(b"\n").removesuffix(b"\r").removeprefix(start)


def _raw_lines(path: Path, expected: str, budget: Budget) -> Iterator[bytes]:
    """Yield the lines of a file as bytes."""
    with reading(path, expected=expected), open_text(path) as file:
        yield from _cleaned(_bounded(file, path, budget))


def _bounded(file: io.BufferedIOBase, path: Path, budget: Budget) -> Iterator[bytes]:
    """Yield the lines of a file; refuse one that would fill the memory."""
    meter, taken = Meter(path, budget), 0
    for number in count(1):
        line = file.readline(LONGEST_TEXT + 1)
        taken += len(line) + LINE_BYTES
        if len(line) > LONGEST_TEXT:
            raise long_line(path, number, most=LONGEST_TEXT)
        if taken > BLOCK or not line:
            meter.take(bytes=taken)
            taken = 0
        if not line:
            return
        yield line


def long_line(path: Path, number: int, *, most: int) -> DataError:
    """Return the error for a line that is longer than any line of text."""
    return DataError(
        f"the line is longer than {most // MEGABYTE} MB",
        path=path,
        line=number,
        remedy="Is this a text file? It should hold one sentence per line.",
    )


class BoundedGzip(gzip.GzipFile):
    """A gzip file that is refused when it expands beyond its budget."""

    def __init__(self, file: BinaryIO, *, path: Path):
        super().__init__(fileobj=file)
        status = os.fstat(file.fileno())
        packed = status.st_size if stat.S_ISREG(status.st_mode) else None
        self._meter = Meter(path, STREAMED, packed=packed)

    def read(self, size: int | None = -1) -> bytes:
        """Read some bytes, or all of them."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(BLOCK), b""))
        found = super().read(size)
        self._meter.take(bytes=len(found))
        return found

    def readline(self, size: int | None = -1) -> bytes:
        """Read a line."""
        left = LONGEST_TEXT + 1 if size is None or size < 0 else size
        parts: list[bytes] = []
        while left and not (parts and parts[-1].endswith(b"\n")):
            parts.append(super().readline(min(left, LONGEST_LINE)))
            if not parts[-1]:
                break
            self._meter.take(bytes=len(parts[-1]))
            left -= len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)


class DamagedZstdError(Exception):
    """A zstd file that cannot be unpacked."""


class BoundedZstd(io.RawIOBase):
    """The content of a zstd file, which is refused when it expands beyond its budget."""

    def __init__(self, file: BinaryIO, *, path: Path):
        try:
            import pyarrow
        except ImportError:
            raise SettingsError(
                f"{path}: zstd files are read with pyarrow, which is not installed: "
                "pip install pyarrow"
            ) from None
        self._stream: Any = pyarrow.CompressedInputStream(pyarrow.PythonFile(file), "zstd")
        status = os.fstat(file.fileno())
        packed = status.st_size if stat.S_ISREG(status.st_mode) else None
        self._meter = Meter(path, STREAMED, packed=packed)

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as there is content."""
        try:
            found: bytes = self._stream.read(len(buffer))
        except OSError as error:
            raise DamagedZstdError from error
        self._meter.take(bytes=len(found))
        buffer[: len(found)] = found
        return len(found)


def unpacked_name(path: str | Path) -> str:
    """Return the name of a file without the ending of its compression."""
    name = Path(path).name
    return next((name.removesuffix(end) for end in PACKED if name.endswith(end)), name)


@contextmanager
def open_text(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file for reading; decompress it if it is a gzip or zstd file."""
    with open_input(path) as file:
        # Opened only once, so that it can be a pipe.
        mark: bytes = file.peek(4)[:4]  # type: ignore[attr-defined]
        if path.suffix == ".gz" or mark[:2] == GZIP_MARK:
            yield BoundedGzip(file, path=path)
        elif path.suffix == ".zst" or mark == ZSTD_MARK:
            yield io.BufferedReader(BoundedZstd(file, path=path), BLOCK)
        else:
            yield file  # type: ignore[misc]


def read_whole(path: Path, *, expected: str, budget: Budget = GENEROUS) -> bytes:
    """Return the content of a file, unpacked; refuse one that would fill the memory."""
    meter, blocks = Meter(path, budget), []
    with reading(path, expected=expected), open_text(path) as file:
        while block := file.read(BLOCK):
            meter.take(bytes=len(block))
            blocks.append(block)
    return b"".join(blocks)


@contextmanager
def reading(path: Path, *, expected: str) -> Iterator[None]:
    """Turn errors of reading a file into a DataError."""
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise DataError(
            "the gzip file is damaged or incomplete",
            path=path,
            remedy="Copy or download it again.",
        ) from None
    except DamagedZstdError:
        raise DataError(
            "the zstd file is damaged or incomplete",
            path=path,
            remedy="Copy or download it again.",
        ) from None
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, remedy=_suggestion(path)) from None
    except IsADirectoryError:
        raise DataError(
            "this is a folder", path=path, remedy=f"Name a file with {expected}."
        ) from None
    except OSError as error:
        raise DataError(
            f"the file cannot be read ({error.strerror})",
            path=path,
            remedy="Check the path and its permissions.",
        ) from None


def decoded_line(line: bytes, path: Path, number: int) -> str:
    """Return a line as text; raise if it is not UTF-8."""
    if number == 1 and line.startswith(UTF16_MARKS):
        raise DataError(
            "the text is UTF-16, not UTF-8",
            path=path,
            line=number,
            remedy="Convert it: iconv -f UTF-16 -t UTF-8.",
        )
    if b"\0" in line:
        raise DataError(
            f"a NUL byte at byte {line.index(0) + 1} of the line",
            path=path,
            line=number,
            remedy="Is this a text file? If so, remove the byte.",
        )
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"invalid UTF-8 at byte {error.start + 1} of the line (0x{line[error.start]:02x})",
            path=path,
            line=number,
            remedy="Convert the file to UTF-8, for example: iconv -f LATIN1 -t UTF-8.",
        ) from None


def _suggestion(path: Path) -> str:
    """Return a hint at the file that may have been meant."""
    if not path.parent.is_dir():
        return f"There is no folder {path.parent} either."
    names = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
    if near := get_close_matches(path.name, names, n=3):
        return f"Did you mean {' or '.join(near)}?"
    return "Check the path."


class Line(NamedTuple):
    """A line, its number counted from 1, and its line end: "", "\\n" or "\\r\\n"."""

    number: int
    text: str
    end: str


@dataclass(frozen=True)
class LinePosition:
    """A position in a text, with a digest of the text before it."""

    lines: int
    offset: int
    digest: str


class LineStream:
    """A reader of lines in windows; its memory does not depend on the size of the file."""

    def __init__(self, file: io.BufferedIOBase, *, path: Path):
        self._file = file
        self._path = path
        self._start()

    def _start(self) -> None:
        self._lines = 0
        self._offset = 0
        self._digest = Fingerprint()

    def window(self, lines: int) -> list[Line]:
        """Return the next lines: fewer if they are long, none at the end of the file."""
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
    def position(self) -> LinePosition:
        """How far the reading is."""
        return LinePosition(self._lines, self._offset, self._digest.value)

    @property
    def share(self) -> float | None:
        """The share of the file that has been read; None for a pipe, which has no size."""
        if not self.rereadable:
            return None
        raw: Any = self._file.fileobj if isinstance(self._file, gzip.GzipFile) else self._file
        size = os.fstat(raw.fileno()).st_size
        return min(1.0, raw.tell() / size) if size else 1.0

    @property
    def rereadable(self) -> bool:
        """Whether this is a file on disk, which can be read again, rather than a pipe."""
        try:
            return stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        except OSError:  # a file in memory
            return False

    def rewind(self) -> None:
        """Go back to the beginning."""
        self._file.seek(0)
        self._start()

    def skip(self, position: LinePosition) -> bool:
        """Read up to an earlier position; return False if the text before it has changed."""
        while self._offset < position.offset:
            with reading(self._path, expected=SENTENCES):
                block = self._file.read(min(BLOCK, position.offset - self._offset))
            if not block:
                return False
            self._offset += len(block)
            self._digest.add(block)
        self._lines = position.lines
        return self.position == position

    def _line(self, raw: bytes) -> Line:
        self._lines += 1
        if len(raw) > LONGEST_LINE:
            raise long_line(self._path, self._lines, most=LONGEST_LINE)
        self._offset += len(raw)
        self._digest.add(raw)
        text = raw.removesuffix(b"\n")
        if text != raw:
            text = text.removesuffix(b"\r")
        end = raw[len(text) :].decode()
        if self._lines == 1:
            text = text.removeprefix(BYTE_ORDER_MARK)
        return Line(self._lines, decoded_line(text, self._path, self._lines), end)


@contextmanager
def open_stream(path: Path) -> Iterator[LineStream]:
    """Open a file, plain or compressed, or a pipe."""
    with ExitStack() as stack:
        with reading(path, expected=SENTENCES):
            file = stack.enter_context(open_text(path))
        yield LineStream(file, path=path)
