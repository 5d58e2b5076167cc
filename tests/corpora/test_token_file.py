from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RunError
from regard.corpora.running_text import (
    TokenFile,
    has_tokens,
    measured,
    open_tokens,
    write_tokens,
)


def written(folder: Path, *, vocab: int = 300) -> TokenFile:
    return write_tokens(
        folder / "data" / "train.tokens",
        ["añb", "", "cd"],
        encode=lambda text: [ord(letter) for letter in text],
        vocab=vocab,
        digest="d",
    )


@pytest.mark.parametrize(("vocab", "width"), [(300, 2), (1 << 16, 2), ((1 << 16) + 1, 4)])
def test_what_was_written_is_read(tmp_path: Path, vocab: int, width: int) -> None:
    path = tmp_path / "data" / "train.tokens"
    assert not has_tokens(path)
    found = written(tmp_path, vocab=vocab)
    assert has_tokens(path)
    assert open_tokens(path) == found
    assert (len(found), found.characters, found.bytes, found.width) == (5, 5, 6, width)
    assert path.stat().st_size == 5 * width
    rows = found.rows(np.array([0, 2]), length=3)
    assert rows.tolist() == [[97, 241, 98], [98, 99, 100]]
    assert rows.dtype == np.int64


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("train.tokens", b"short", "has 5 bytes instead of 10"),
        ("train.tokens.json", b"{", "description is missing or damaged"),
        ("train.tokens.json", b'{"tokens": 5}', "description is missing or damaged"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, file: str, content: bytes, message: str) -> None:
    path = written(tmp_path).path
    (path.parent / file).write_bytes(content)
    with pytest.raises(RunError, match=message):
        open_tokens(path)


def test_tokens_of_another_vocabulary_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path).path
    with pytest.raises(RunError, match=r"has the token 241, but the vocabulary ends at 199"):
        open_tokens(path, vocab=200).rows(np.array([0]), length=3)


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    found = written(tmp_path)
    found.path.write_bytes(b"ab")
    with pytest.raises(RunError, match="was cut short while it was read: delete the folder"):
        found.rows(np.array([0]), length=2)


def test_several_processes_write_what_one_does(tmp_path: Path) -> None:
    texts = [chr(97 + number % 26) * (number + 1) for number in range(30)]
    seen: list[int] = []
    found = write_tokens(
        tmp_path / "many.tokens",
        texts,
        encode=lambda text: [ord(letter) for letter in text],
        vocab=300,
        digest="d",
        watch=seen.append,
    )
    ids = found.rows(np.array([0]), length=len(found))[0]
    assert "".join(map(chr, ids.tolist())) == "".join(texts)
    assert seen[-1] == found.characters == len(found) == sum(map(len, texts))


def test_a_text_is_measured_again_when_its_file_has_changed(tmp_path: Path) -> None:
    file, record = tmp_path / "a.txt", tmp_path / "data" / "text.json"
    read: list[str] = []

    def chunks() -> list[str]:
        read.append(file.read_text())
        return read[-1:]

    file.write_text("one")
    first = measured(chunks, [file], record)
    assert measured(chunks, [file], record) == first
    assert read == ["one"]
    record.write_text('{"files": 1}')
    assert measured(chunks, [file], record) == first
    file.write_text("two and more")
    assert measured(chunks, [file], record).characters == 12
    assert measured(chunks, [], tmp_path / "none.json").characters == 12  # from memory: no record
    assert not (tmp_path / "none.json").exists()
