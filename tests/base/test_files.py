"""Files are written whole or not at all, and one fingerprint tells data apart."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.base.errors import RunError
from regard.base.files import (
    Fingerprint,
    fingerprint,
    finish_replacing,
    locked,
    whole_file,
    whole_folder,
    write_file,
    write_json,
)


def test_a_file_is_written_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    write_file(path, "grün\r\nblau\n")
    assert path.read_bytes() == "grün\r\nblau\n".encode()
    write_file(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(tmp_path.iterdir()) == [path]


def test_json_is_readable_and_ends_with_a_line_end(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"word": "grün", "count": 1})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text == '{\n "word": "grün",\n "count": 1\n}\n'
    write_json(tmp_path / "b.json", [1, 2], indent=None)
    assert json.loads((tmp_path / "b.json").read_text()) == [1, 2]
    assert (tmp_path / "b.json").read_text() == "[1, 2]\n"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    write_file(path, "old")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as file:
        file.write(b"half of the n")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_read_meanwhile_is_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    write_file(path, "old")
    with whole_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_follow_the_umask_and_those_of_an_old_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = os.umask(0o022)
    try:
        write_file(path, "one")
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        path.chmod(0o640)
        write_file(path, "two")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="no /dev/null")
def test_a_device_is_written_to_and_not_replaced() -> None:
    write_file(Path("/dev/null"), "nothing")
    assert Path("/dev/null").is_char_device()


def test_a_name_as_long_as_the_file_system_takes(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    write_file(path, "long")
    assert path.read_text() == "long"


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "best"
    with whole_folder(folder) as writing:
        (writing / "weights").write_text("first")
        assert not folder.exists()
    with pytest.raises(KeyboardInterrupt), whole_folder(folder) as writing:
        (writing / "weights").write_text("half")
        raise KeyboardInterrupt
    assert (folder / "weights").read_text() == "first"
    with whole_folder(folder) as writing:
        (writing / "weights").write_text("second")
    assert (folder / "weights").read_text() == "second"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_replacement_that_was_cut_off_is_completed(tmp_path: Path) -> None:
    folder = tmp_path / "best"
    for name in (".best.writing", ".best.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text(name)
    finish_replacing(folder)
    assert (folder / "weights").read_text() == ".best.writing"
    finish_replacing(folder)  # is done once
    assert (folder / "weights").read_text() == ".best.writing"


def test_a_fingerprint_is_the_blake2_of_its_parts(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content" * 300_000)
    numbers = np.arange(12, dtype=np.float32).reshape(3, 4)
    wanted = hashlib.blake2b(digest_size=16)
    for part in ("grün".encode(), b"\x00", numbers.tobytes(), b"content" * 300_000):
        wanted.update(part)
    assert fingerprint(["grün", b"\x00", numbers, tmp_path / "file"]) == wanted.hexdigest()


def test_a_fingerprint_sees_values_and_not_their_layout_in_memory() -> None:
    numbers = np.arange(12).reshape(3, 4)
    assert fingerprint([numbers.T.copy().T]) == fingerprint([numbers])
    assert fingerprint([numbers[:, ::2]]) == fingerprint([numbers[:, ::2].copy()])
    assert fingerprint([numbers]) != fingerprint([numbers + 1])
    assert fingerprint([np.zeros((0, 3))]) == fingerprint([])


def test_a_fingerprint_can_be_asked_on_the_way() -> None:
    found = Fingerprint()
    found.add("a")
    first = found.value
    found.add("b")
    assert first == fingerprint(["a"])
    assert found.value == fingerprint(["ab"]) != first


HOLDER = """
import sys
from pathlib import Path
from regard.base.files import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time_holds_the_lock_of_a_folder(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(RunError) as refused, locked(tmp_path):
            pass
        assert str(refused.value) == (
            f"{tmp_path} is in use by another process ({holder.pid}). Wait until it has finished, "
            "or choose another folder."
        )
        holder.kill()  # the system ends the lock, and the file it leaves is in nobody's way
    assert (tmp_path / ".lock").exists()
    with locked(tmp_path), pytest.raises(RunError, match="in use"), locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
def test_a_copy_of_the_process_does_not_hold_the_lock(tmp_path: Path) -> None:
    read, write = os.pipe()
    with locked(tmp_path):
        child = os.fork()
        if not child:
            os.close(write)
            os.read(read, 1)  # until the parent is done
            os._exit(0)
        os.close(read)
    try:
        with locked(tmp_path):
            pass
    finally:
        os.close(write)
        os.waitpid(child, 0)


def test_a_file_system_without_locks_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: Any) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr("regard.base.files.fcntl.flock", unsupported)
    with locked(tmp_path):
        pass
