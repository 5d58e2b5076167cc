from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import DataError
from regard.corpora.running_text import between, measure, text_chunks, thinned
from regard.text.tokenizers import train_tokenizer

TEXTS = st.text("ab \n'", max_size=80).map(lambda text: "x" + text)


@settings(deadline=None, max_examples=60)
@given(text=TEXTS, size=st.integers(1, 30))
def test_chunks_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int
) -> None:
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text(text, encoding="utf-8", newline="")
    chunks = list(text_chunks([path], size=size))
    whole = text if text.endswith("\n") else text + "\n"
    assert "".join(chunks) == whole
    assert all(chunk.endswith("\n") for chunk in chunks)
    assert measure(chunks) == measure([whole])
    first, last = len(whole) // 3, 2 * len(whole) // 3
    assert "".join(between(chunks, first, last)) == whole[first:last]


def test_chunks_have_the_tokens_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text("a  b\n\n  c's\nd\n \n\te\nf g\n" * 9, encoding="utf-8")
    tokenizer = train_tokenizer([path.read_text(encoding="utf-8")], kind="byte-bpe", size=280)
    chunks = list(text_chunks([path], size=10))
    assert len(chunks) > 5
    separate = [number for chunk in chunks for number in tokenizer.encode(chunk)]
    assert separate == tokenizer.encode("".join(chunks))


def test_files_follow_each_other_and_may_be_compressed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    plain.write_bytes(b"one\r\ntwo")
    packed.write_bytes(gzip.compress(b"three\n"))
    assert "".join(text_chunks([plain, packed])) == "one\ntwo\nthree\n"


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.txt"
    path.touch()
    with pytest.raises(DataError, match=r"empty\.txt: the file is empty"):
        list(text_chunks([path]))


def test_a_part_comes_from_all_over_the_text() -> None:
    chunks = ["a" * 10, "b" * 10]
    assert list(thinned(chunks, total=20, wanted=4)) == ["aa", "bb"]
    assert list(thinned(chunks, total=20, wanted=20)) == chunks
