"""Files that are written whole or not at all, and the one fingerprint of data and weights."""

import errno
import hashlib
import json
import math
import os
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

from regard.base.budgets import open_input, parse_json
from regard.base.errors import DamagedError, RunError

BLOCK = 1 << 20
NAME_LENGTH = 40  # of a temporary name: a file system takes 255 bytes in all
ENDS_READ = 1 << 16  # bytes at both ends of a file that tell whether it has changed
_NUMBERS = count()

# What a fingerprint can take in: a text, bytes, the numbers of an array, the content of a file.
Part: TypeAlias = "str | bytes | np.ndarray | Path"


class Fingerprint:
    """A BLAKE2b digest of 16 bytes that is taken part by part.

    Parts are joined without a mark between them; a caller whose parts vary in length adds one.
    """

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, part: Part) -> None:
        """Take in one more part."""
        if isinstance(part, str):
            self._digest.update(part.encode())
        elif isinstance(part, Path):
            with part.open("rb") as file:
                while block := file.read(BLOCK):
                    self._digest.update(block)
        elif isinstance(part, np.ndarray):
            self._digest.update(np.ascontiguousarray(part).data)
        else:
            self._digest.update(part)

    @property
    def value(self) -> str:
        """The digest of all parts so far, in hexadecimal."""
        return self._digest.hexdigest()


def fingerprint(parts: Iterable[Part]) -> str:
    """Return a short digest of these parts in their order."""
    found = Fingerprint()
    for part in parts:
        found.add(part)
    return found.value


def states_of(files: Iterable[str | Path]) -> list[list[str | int]]:
    """Return what tells whether files have changed: size, time, and a digest of both ends."""
    return [[str(Path(file).resolve()), *_state_of(Path(file))] for file in files]


def _state_of(path: Path) -> tuple[int, int, str]:
    if not path.is_file():  # which its reader says better
        return -1, -1, ""
    status = path.stat()
    digest = Fingerprint()
    with path.open("rb") as file:
        digest.add(file.read(ENDS_READ))
        file.seek(max(0, status.st_size - ENDS_READ))
        digest.add(file.read(ENDS_READ))
    return status.st_size, status.st_mtime_ns, digest.value


CHANGED = "it does not match its checksum"


def require_checksum(path: Path, wanted: str) -> None:
    """Refuse a file of a run whose fingerprint is another one."""
    with reading(path):
        found = fingerprint([path])
    if found != wanted:
        raise DamagedError(path, CHANGED)


@contextmanager
def reading(path: Path, *unreadable: type[Exception]) -> Iterator[None]:
    """Tell damage to a file of a run, as these errors, from a file that must not be read."""
    try:
        yield
    except FileNotFoundError as error:
        raise DamagedError(path, "there is no such file") from error
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise DamagedError(path, "was it cut short?") from error
    except unreadable as error:
        raise DamagedError(path, "was it cut short?") from error


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write into, which takes the name of `path` when it is whole.

    It is written under a temporary name in the same folder, synced and renamed: after a crash
    there is the old content or the new, never half of it. A link stays a link, and a file that
    is replaced keeps its permissions. What is no plain file, as /dev/stdout, is written directly.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve() if path.is_symlink() else path
    name = f".{path.name[:NAME_LENGTH]}.{os.getpid()}-{next(_NUMBERS)}.writing"
    temporary = path.with_name(name)
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all; a text becomes UTF-8, its line ends as they are."""
    encoded = content.encode() if isinstance(content, str) else content
    with whole_file(path) as file:
        file.write(encoded)


def write_json(path: Path, value: Any, *, indent: int | None = 1) -> None:
    """Write plain values as JSON, with a line end after them."""
    write_file(path, json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


def read_json(path: Path, *, owner: str) -> Any:
    """Return the value in a JSON file; raise RunError if it is missing or damaged.

    `owner` is what the file belongs to, as "tokenizer".
    """
    try:
        with open_input(path) as file:
            return parse_json(file.read().decode())
    except FileNotFoundError:
        raise RunError(f"{path} is missing, so the {owner} cannot be read") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise RunError(f"{path} is cut short or is not a {owner}'s JSON file") from None


def npz_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Return an array of an npz file; one of objects, or smaller than it says, is an error.

    Damaged members raise whatever zipfile, its unpackers and numpy meet.
    """
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, kind = header(file)
        if kind.hasobject:
            raise ValueError("Object arrays cannot be loaded")
        if math.prod(shape) * kind.itemsize > member.file_size or min(shape, default=0) < 0:
            raise EOFError("the array is smaller than its shape")
    with archive.open(member) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def require_free(path: Path, *, force: bool = False) -> None:
    """Refuse to replace a file or a folder with something in it, unless `force` says so."""
    taken = any(path.iterdir()) if path.is_dir() else path.exists()
    if taken and not force:
        raise RunError(
            f"{path} exists already: choose another name with --output, or replace it with --force."
        )


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder to write into, which takes the place of `folder` when it is whole."""
    temporary, replaced = _beside(folder)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for path in (*temporary.rglob("*"), temporary):
            _sync(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    shutil.rmtree(replaced, ignore_errors=True)
    if folder.exists():
        folder.rename(replaced)
    temporary.rename(folder)
    shutil.rmtree(replaced, ignore_errors=True)
    _sync(folder.parent)


def finish_replacing(folder: Path) -> None:
    """Complete a replacement by `whole_folder` that a crash cut off between its two renames."""
    temporary, replaced = _beside(folder)
    if replaced.exists() and temporary.exists() and not folder.exists():
        temporary.rename(folder)  # it was whole before the old one was moved aside


def _beside(folder: Path) -> tuple[Path, Path]:
    """Return the names of a folder that is being written and of the one that it replaces."""
    return folder.with_name(f".{folder.name}.writing"), folder.with_name(f".{folder.name}.old")


def _sync(path: Path) -> None:
    """Have the operating system write a file or folder to the disk before going on."""
    if sys.platform == "win32":  # it syncs only what is open for writing, and no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


LOCK = ".lock"
_LOCKS: set[BinaryIO] = set()


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a folder; if another process has it, wait for it or raise RunError.

    The system ends a lock with its process, however that ends. Where a file system has no locks,
    nothing is locked.
    """
    file = _lock_file(folder, wait=wait)
    _LOCKS.add(file)
    try:
        yield
    finally:
        _LOCKS.discard(file)
        if sys.platform != "win32":  # which does not remove open files
            (folder / LOCK).unlink(missing_ok=True)
        file.close()


def _lock_file(folder: Path, *, wait: bool) -> BinaryIO:
    """Return the open and locked file of a folder's lock."""
    path = folder / LOCK
    while True:
        file = path.open("a+b")
        try:
            _lock(file, wait=wait)
        except OSError as error:
            holder = path.read_bytes()[:20].decode("ascii", "replace") if path.exists() else ""
            file.close()
            if not isinstance(error, BlockingIOError | PermissionError):
                raise
            raise RunError(
                f"{folder} is in use by another process{f' ({holder})' if holder else ''}. Wait "
                "until it has finished, or choose another folder."
            ) from None
        # The holder before may have removed the file since it was opened.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                file.truncate(0)
                file.write(str(os.getpid()).encode())
                file.flush()
                return file
        file.close()


if sys.platform == "win32":

    def _lock(file: BinaryIO, *, wait: bool) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)

else:

    def _lock(file: BinaryIO, *, wait: bool) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise

    def _release_in_child() -> None:
        """Close the locks in a copy of this process, which would hold them beyond its end."""
        for file in _LOCKS:
            file.close()
        _LOCKS.clear()

    os.register_at_fork(after_in_child=_release_in_child)
