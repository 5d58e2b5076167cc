from __future__ import annotations

import gzip
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base import budgets
from regard.base.errors import DataError, SettingsError
from regard.corpora.lines import decode_lines, read_lines, stream_lines


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        pytest.param(b"a\nb\n", ["a", "b"], id="plain"),
        pytest.param(b"a\nb", ["a", "b"], id="no newline at the end"),
        pytest.param(b"a\r\nb\r\n", ["a", "b"], id="Windows line ends"),
        pytest.param(b"\xef\xbb\xbfa\nb\n", ["a", "b"], id="byte order mark"),
        pytest.param(b"  a  b \t\n", ["  a  b \t"], id="spacing kept"),
        pytest.param(b"a\n\nb\n\n", ["a", "", "b", ""], id="empty lines kept"),
        pytest.param("a\u2028b\x85c\x0bd\n".encode(), ["a\u2028b\x85c\x0bd"], id="only newlines"),
        pytest.param("Straße 👩‍👧\n".encode(), ["Straße 👩‍👧"], id="Unicode"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_lines(tmp_path: Path, content: bytes, lines: list[str], compressed: bool) -> None:
    path = tmp_path / ("text.gz" if compressed else "text")
    path.write_bytes(gzip.compress(content) if compressed else content)
    assert read_lines(path) == lines
    assert decode_lines(content, path=Path("standard input")) == lines


def test_gzip_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "train.en"
    path.write_bytes(gzip.compress(b"a\n"))
    assert read_lines(path) == ["a"]


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"a\nb\n",))
    writer.start()
    assert read_lines(path) == ["a", "b"]
    writer.join()


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_characters="\n\r\0\ufeff", codec="utf-8"))
    ).filter(any)
)
def test_lines_come_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "text"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    assert read_lines(path) == lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "text: the file is empty", id="empty"),
        pytest.param(b"\xef\xbb\xbf", "the file is empty", id="byte order mark alone"),
        pytest.param(b"\n", "the file is empty", id="one empty line"),
        pytest.param(
            b"a\nb\nna\xefve\n",
            r"text, line 3: invalid UTF-8 at byte 3 of the line \(0xef\)\. Convert .* iconv",
            id="Latin-1",
        ),
        pytest.param(b"a\n\xed\xa0\x80\n", "line 2: invalid UTF-8 at byte 1", id="surrogate"),
        pytest.param(
            "a\n".encode("utf-16"), "text, line 1: the text is UTF-16, not UTF-8", id="UTF-16"
        ),
        pytest.param(b"a\nb\0c\n", "text, line 2: a NUL byte at byte 2 of the line", id="NUL"),
    ],
)
def test_content_that_cannot_be_used(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_lines(path)


def test_errors_name_where_the_text_was_read() -> None:
    with pytest.raises(DataError, match="standard input, line 2: invalid UTF-8"):
        decode_lines(b"a\n\xff\n", path=Path("standard input"))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"plain text", id="not gzip"),
        pytest.param(gzip.compress(b"some text\n" * 100)[:-12], id="cut short"),
        pytest.param(gzip.compress(b"some text\n")[:12] + b"\xff" * 20, id="damaged"),
    ],
)
def test_damaged_gzip(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"text\.gz: the gzip file is damaged or incomplete"):
        read_lines(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(
            "trian.en", r"trian\.en: there is no such file\. Did you mean train\.en", id="near"
        ),
        pytest.param("xyz", r"no such file\. Check the path", id="nothing near"),
        pytest.param("other/train.en", r"There is no folder .*other either", id="no folder"),
        pytest.param("folder", "folder: this is a folder", id="a folder"),
        pytest.param("train.en/x", r"cannot be read \(Not a directory\)", id="a file as folder"),
    ],
)
def test_files_that_cannot_be_opened(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "train.en").write_text("a\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=message):
        read_lines(tmp_path / name)


def zstd(content: bytes) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    packed: bytes = pyarrow.Codec("zstd").compress(content, asbytes=True)
    return packed


@pytest.mark.parametrize("name", ["text.zst", "text"])
def test_zstd_is_known_by_its_ending_or_its_first_bytes(tmp_path: Path, name: str) -> None:
    lines = [f"line {number}" for number in range(3_000)]
    (tmp_path / name).write_bytes(zstd("".join(f"{line}\n" for line in lines).encode()))
    assert read_lines(tmp_path / name) == lines
    assert list(stream_lines(tmp_path / name, expected="lines")) == lines


@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: b"plain text"])
def test_damaged_zstd(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "text.zst"
    path.write_bytes(damage(zstd(b"some text\n" * 1_000)))
    with pytest.raises(DataError, match=r"text\.zst: the zstd file is damaged or incomplete"):
        read_lines(path)


def test_a_zstd_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "FREE_BYTES", 1 << 20)
    path = tmp_path / "text.zst"
    path.write_bytes(zstd((b"x" * 9_999 + b"\n") * 1_000))
    with pytest.raises(DataError, match=r"refused: [\d,]+ bytes unpack to more than"):
        for _ in stream_lines(path, expected="lines"):
            pass


def test_zstd_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text.zst"
    path.write_bytes(zstd(b"some text\n"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SettingsError, match=r"text\.zst: zstd files are read with pyarrow.*pip"):
        read_lines(path)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_bytes_that_are_not_utf_8_are_named_with_their_line(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"text.en{ending}"
    content = b"fine\n" * 9_000 + b"caf\xe9\n" + b"fine\n"
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstd}[ending]
    path.write_bytes(pack(content))
    with pytest.raises(DataError, match=r"line 9001: invalid UTF-8 at byte 4 of the line \(0xe9\)"):
        for _ in stream_lines(path, expected="lines"):
            pass
