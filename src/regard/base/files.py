"""Files that are written whole or not at all, and the one fingerprint of data and weights."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

BLOCK = 1 << 20
NAME_LENGTH = 40  # of a temporary name: a file system takes 255 bytes in all
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
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
