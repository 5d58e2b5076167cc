from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import DataError, RunError
from regard.corpora.formats.document import ColumnReader
from regard.corpora.lines import LinePosition, LineStream, open_stream
from regard.documents.files import (
    PartFiles,
    SplitLines,
    WholeLines,
    translate_file,
    translate_stream,
)
from regard.documents.segments import SentenceCache, Splitting, linked
from regard.tasks.translation.model import SentenceTooLongError
from regard.tasks.translation.results import Translation


class Backwards:
    """A model that spells sentences backwards, longest first, and counts what it is given."""

    def __init__(self, *, fail_at: str = ""):
        self.seen: list[str] = []
        self.fail_at = fail_at

    def __call__(self, texts: Sequence[str]) -> Iterator[tuple[int, Translation]]:
        for index in sorted(range(len(texts)), key=lambda i: -len(texts[i])):
            text = texts[index]
            if self.fail_at and self.fail_at in text:
                raise KeyboardInterrupt
            if len(text) > 2_000:
                raise SentenceTooLongError(index, f"{len(text)} tokens")
            self.seen.append(text)
            yield index, Translation(text, text[::-1], -1.0, -1.0, None)


def lines_of(model: Backwards, path: Path = Path("in"), **options: Any) -> SplitLines:
    return SplitLines(SentenceCache(model, linked), path, **options)


class Collected:
    def __init__(self) -> None:
        self.text = ""
        self.positions: list[LinePosition] = []

    def write(self, texts: Sequence[str]) -> None:
        self.text += texts[0]

    def commit(self, position: LinePosition) -> None:
        self.positions.append(position)


def translated(content: bytes, *, window: int, **options: Any) -> str:
    sink = Collected()
    stream = LineStream(io.BytesIO(content), path=Path("in"))
    translate_stream(stream, sink, lines_of(Backwards(), **options), window=window)
    return sink.text


LINES = st.lists(
    st.text(alphabet=st.characters(exclude_characters="\n\r\0\ufeff", codec="utf-8"), max_size=30)
).filter(lambda lines: lines not in ([], [""]))


@settings(deadline=None, max_examples=60)
@given(LINES, st.integers(1, 5), st.sampled_from(["\n", "\r\n"]))
def test_one_line_out_for_each_line_in(lines: list[str], window: int, end: str) -> None:
    content = "".join(line + end for line in lines).encode()
    expected = "".join(line.strip()[::-1] + "\n" for line in lines)
    assert translated(content, window=window) == expected


def test_mixed_line_ends_and_blank_lines() -> None:
    assert translated(b"ab\r\n\n  \ncd\nef", window=2) == "ba\n\n\ndc\nfe\n"


def test_a_translation_never_breaks_its_line() -> None:
    class Breaking(Backwards):
        def __call__(self, texts: Sequence[str]) -> Iterator[tuple[int, Translation]]:
            yield from ((i, Translation(t, "a\r\nb", 0.0, 0.0, None)) for i, t in enumerate(texts))

    sink = Collected()
    stream = LineStream(io.BytesIO(b"x\ny\n"), path=Path("in"))
    translate_stream(stream, sink, lines_of(Breaking()))
    assert sink.text == "a b\na b\n"


def test_long_lines_are_split_into_sentences() -> None:
    text = "One two. " * 300
    assert translated(f"{text}\nshort\n".encode(), window=9) == (
        " ".join([".owt enO"] * 300) + "\ntrohs\n"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"a\nb\0\n", "in, line 2: a NUL byte at byte 2", id="NUL"),
        pytest.param(b"a\nb\nc\xff\n", "in, line 3: invalid UTF-8 at byte 2", id="UTF-8"),
        pytest.param(b"", "in: the file is empty", id="empty"),
        pytest.param(b"\n", "in: the file is empty", id="one empty line"),
        pytest.param(b"\xef\xbb\xbf", "in: the file is empty", id="byte order mark"),
        pytest.param(
            b"a\n" + b"x" * 1_000_000,
            "in, line 2: the line has 1000000 tokens, more than .* Split it",
            id="a megabyte without a full stop",
        ),
        pytest.param(b"x" * (17 * 2**20), "in, line 1: the line is longer than 16 MB", id="17 MB"),
    ],
)
def test_bad_input(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translated(content, window=2)


def test_whole_lines_have_several_views() -> None:
    def views(t: Translation) -> tuple[str, ...]:
        return (t.text, t.source)

    sink: list[list[str]] = []

    class Both(Collected):
        def write(self, texts: Sequence[str]) -> None:
            sink.append(list(texts))

    stream = LineStream(io.BytesIO(b"ab\ncd\n"), path=Path("in"))
    translate_stream(stream, Both(), WholeLines(SentenceCache(Backwards(), views), Path("in"), 2))
    assert sink == [["ba\ndc\n", "ab\ncd\n"]]
    long = LineStream(io.BytesIO(b"ab\n" + b"x" * 3000), path=Path("in"))
    with pytest.raises(DataError, match="in, line 2: the line has 3000 tokens"):
        translate_stream(long, Both(), WholeLines(SentenceCache(Backwards(), views), Path("in"), 2))


def test_repeated_lines_are_translated_once() -> None:
    model = Backwards()
    sentences = SentenceCache(model, lambda t: t.text, entries=2)
    assert sentences(["ab", "cd", "ab"]) == ["ba", "dc", "ba"]
    assert sentences(["cd", "ef"]) == ["dc", "fe"]
    assert sorted(model.seen) == ["ab", "cd", "ef"]
    sentences(["ab"])  # only two are remembered
    assert model.seen[-1] == "ab"
    sentences(["y" * 1000])
    sentences(["y" * 1000])
    assert model.seen.count("y" * 1000) == 2


# Name of the case: what happened to the files between the two runs, and what is said then.
class Work:
    """A bulk translation of 10 lines with windows of 3."""

    def __init__(self, folder: Path, *, terms: str = "model 1", suffix: str = ".txt"):
        self.source, self.out = folder / f"in{suffix}", folder / "out.txt"
        self.terms = {"model": terms}
        self.notices: list[str] = []
        self.shares: list[float | None] = []

    def moved(self, lines: int, share: float | None) -> None:
        self.shares.append(share)

    def run(self, model: Backwards, **options: Any) -> int:
        with (
            open_stream(self.source) as stream,
            PartFiles([self.out], terms=self.terms) as parts,
        ):
            return translate_file(
                stream,
                parts,
                lines_of(model, self.source, **options),
                window=3,
                watcher=self,
                notice=self.notices.append,
            )


CONTENT = "".join(f"line {number}\n" for number in range(10))
EXPECTED = "".join(f"{number} enil\n" for number in range(10))


def stopped(folder: Path, content: str = CONTENT, suffix: str = ".txt") -> Work:
    """A work that was interrupted in its third window."""
    work = Work(folder, suffix=suffix)
    data = content.encode()
    work.source.write_bytes(gzip.compress(data) if suffix == ".gz" else data)
    with pytest.raises(KeyboardInterrupt):
        work.run(Backwards(fail_at="7"))
    assert (folder / ".out.txt.part").read_text() == EXPECTED[: 6 * 7]
    assert json.loads((folder / ".out.txt.part.json").read_text())["position"]["lines"] == 6
    return work


@pytest.mark.parametrize("suffix", [".txt", ".gz"])
def test_going_on(tmp_path: Path, suffix: str) -> None:
    work = stopped(tmp_path, suffix=suffix)
    with (tmp_path / ".out.txt.part").open("a") as part:  # what was written, but not on record
        part.write("half a li")
    model = Backwards()
    assert work.run(model) == 10
    assert work.out.read_text() == EXPECTED
    assert sorted(model.seen) == ["line 0", *(f"line {number}" for number in range(6, 10))]
    assert work.notices == ["Going on after line 6, where an earlier run stopped."]
    assert work.shares[-1] == 1.0
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"in{suffix}", "out.txt"]


def test_lines_that_were_added_behind_are_no_change(tmp_path: Path) -> None:
    work = stopped(tmp_path)
    work.source.write_text(CONTENT + "more\n")
    work.run(Backwards())
    assert work.out.read_text() == EXPECTED + "erom\n"
    assert "Going on" in work.notices[0]


@pytest.mark.parametrize("case", ["input", "shorter", "terms", "part", "journal", "outputs"])
def test_beginning_anew(tmp_path: Path, case: str) -> None:
    work = stopped(tmp_path)
    expected = EXPECTED
    journal = tmp_path / ".out.txt.part.json"
    if case == "input":
        work.source.write_text(CONTENT.replace("line 2", "lime 2"))
        expected = EXPECTED.replace("2 enil", "2 emil")
    elif case == "shorter":
        work.source.write_text("line 0\n")
        expected = "0 enil\n"
    elif case == "terms":
        work.terms = {"model": "model 2"}
    elif case == "part":
        (tmp_path / ".out.txt.part").write_text("")
    elif case == "journal":
        journal.write_text("no JSON")
    else:
        record = json.loads(journal.read_text())
        journal.write_text(json.dumps({**record, "sizes": [1, 2]}))
    work.run(Backwards())
    assert work.out.read_text() == expected
    assert work.notices == ["The input, the model or the options have changed: beginning anew."]


def test_columns_named_in_the_first_line_are_known_when_going_on(tmp_path: Path) -> None:
    work = Work(tmp_path)
    work.source.write_text("id\ttext\n" + "".join(f"{n}\tab{n}\n" for n in range(9)))
    read = ColumnReader("text", path=work.source)
    with pytest.raises(KeyboardInterrupt):
        work.run(Backwards(fail_at="ab5"), read=read, keep_ends=True)
    work.run(Backwards(), read=ColumnReader("text", path=work.source), keep_ends=True)
    assert work.out.read_text() == "id\ttext\n" + "".join(f"{n}\t{n}ba\n" for n in range(9))


def test_nothing_is_left_of_a_work_that_did_not_begin(tmp_path: Path) -> None:
    work = Work(tmp_path)
    work.source.write_bytes(b"a\n\xff\n")
    with pytest.raises(DataError, match="line 2: invalid UTF-8"):
        work.run(Backwards())
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    out = tmp_path / "out.txt"
    with (
        PartFiles([out], terms={}),
        pytest.raises(RunError, match=r"Another process is writing .*\.out\.txt\.part"),
        PartFiles([out], terms={}),
    ):
        pass


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with (
        pytest.raises(RunError, match=r"Cannot write .*No such file or directory"),
        PartFiles([tmp_path / "no" / "out.txt"], terms={}),
    ):
        pass


def test_splitting_can_be_turned_off() -> None:
    text = "Aa. Bb. " * 3
    whole = translated(text.encode(), window=1, splitting=Splitting(beyond=None))
    each = translated(text.encode(), window=1, splitting=Splitting(beyond=0))
    assert (whole, each) == (text.strip()[::-1] + "\n", " ".join([".aA", ".bB"] * 3) + "\n")


def test_a_line_of_a_hundred_thousand_words_is_translated_in_pieces() -> None:
    model = Backwards()
    line = " ".join(f"w{number}" for number in range(100_000))
    sink = Collected()
    stream = LineStream(io.BytesIO(f"one\n{line}\ntwo\n".encode()), path=Path("in"))
    translate_stream(stream, sink, lines_of(model), window=8)
    first, long, last = sink.text.splitlines()
    assert (first, last) == ("eno", "owt")
    assert sorted(word[::-1] for word in long.split()) == sorted(line.split())
    assert max(map(len, model.seen)) <= 500
