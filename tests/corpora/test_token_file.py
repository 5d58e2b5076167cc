from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RunError
from regard.corpora.running_text import TokenFile, has_tokens, open_tokens, write_tokens


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
