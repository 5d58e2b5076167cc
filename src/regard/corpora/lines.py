"""Lines of a text file, plain or gzip, each exactly as it stands there."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from regard.base.errors import DataError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
GZIP_MARK = b"\x1f\x8b"
SENTENCES = "one sentence a line"


def read_lines(path: Path, *, expected: str = SENTENCES) -> list[str]:
    """Return the lines of a UTF-8 file without their line ends; spacing is left as it is.

    The file may be compressed with gzip, end its lines with "\\r\\n" and begin with a byte order
    mark. The last line may lack its newline. `expected` says in errors what the file should hold.
    """
    return _checked(_raw_lines(path, expected), path, expected)


def stream_lines(path: Path, *, expected: str) -> Iterator[str]:
    """Yield the lines of a file one after the other, as `read_lines` returns them.

    So a file of any size can be read. Of an empty file there are none.
    """
    for number, line in enumerate(_raw_lines(path, expected), 1):
        yield decoded_line(line, path, number)


def decode_lines(content: bytes, *, path: Path) -> list[str]:
    """Return the lines of a text that was read elsewhere; `path` says where, for the errors."""
    return _checked(_cleaned(io.BytesIO(content)), path, SENTENCES)


def _checked(raw_lines: Iterable[bytes], path: Path, expected: str) -> list[str]:
    """Decode lines and refuse a file without any."""
    lines = [decoded_line(line, path, number) for number, line in enumerate(raw_lines, 1)]
    if lines in ([], [""]):
        raise empty_file(path, expected=expected)
    return lines


def empty_file(path: Path, *, expected: str) -> DataError:
    """Return the error of a file without any text."""
    return DataError("the file is empty", path=path, remedy=f"It should hold {expected}.")


def _cleaned(raw_lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without line ends and byte order mark."""
    for number, line in enumerate(raw_lines):
        start = BYTE_ORDER_MARK if number == 0 else b""
        yield line.removesuffix(b"\n").removesuffix(b"\r").removeprefix(start)


def _raw_lines(path: Path, expected: str) -> Iterator[bytes]:
    """Yield the lines of a file as bytes."""
    with reading(path, expected=expected), open_text(path) as file:
        yield from _cleaned(file)


@contextmanager
def open_text(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file, and what gzip compressed in it."""
    with path.open("rb") as file:
        # Peeked at and opened once, so that a pipe can be read as well.
        compressed = path.suffix == ".gz" or file.peek(2)[:2] == GZIP_MARK
        yield gzip.GzipFile(fileobj=file) if compressed else file


@contextmanager
def reading(path: Path, *, expected: str) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise DataError(
            "the gzip file is damaged or cut short",
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
    """Return a line as text, or say what in it is no text."""
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
    """Say which file could have been meant."""
    if not path.parent.is_dir():
        return f"There is no folder {path.parent} either."
    names = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
    if near := get_close_matches(path.name, names, n=3):
        return f"Did you mean {' or '.join(near)}?"
    return "Check the path."
