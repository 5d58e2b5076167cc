"""Tables of every kind, and the columns that are taken from them."""

from __future__ import annotations

import gzip
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from regard.base.errors import DataError, SettingsError
from regard.corpora.labelled import LabelledText, read_labelled
from regard.corpora.parallel import SentencePair, hold_out, iterate_pairs, read_pairs
from regard.corpora.running_text import text_chunks
from regard.corpora.sources import LeftOut

PAIRS = [SentencePair("a dog", "ein Hund"), SentencePair("a cat", "eine Katze")]

# The name of a file, its content, columns, pair.
WAYS: dict[str, tuple[str, str, Sequence[str], str | None]] = {
    "tsv": ("a.tsv", "a dog\tein Hund\tnote\na cat\teine Katze\t\n", (), None),
    "tsv by number": ("a.tsv", "1\tein Hund\ta dog\n2\teine Katze\ta cat\n", ("3", "2"), None),
    "tsv by name": ("a.tsv", "id\tDE\tEN\n1\tein Hund\ta dog\n2\teine Katze\ta cat\n",
                    ("EN", "DE"), None),
    "tsv by pair": ("a.tsv", "de\ten\nein Hund\ta dog\neine Katze\ta cat\n", (), "en-de"),
    "header": ("a.tsv", "target\tsource\nein Hund\ta dog\neine Katze\ta cat\n", (), None),
    "header and numbers": ("a.tsv", "target\tsource\nein Hund\ta dog\neine Katze\ta cat\n",
                           ("2", "1"), None),
    "header of languages": ("a.tsv", "id\tEnglish\tGerman\n1\ta dog\tein Hund\n"
                            "2\ta cat\teine Katze\n", (), None),
    "codes and numbers": ("a.tsv", "fr\tde\ten\n\tein Hund\ta dog\n\teine Katze\ta cat\n",
                          ("3", "2"), None),
    "names by pair": ("a.tsv", "German\tEnglish\nein Hund\ta dog\neine Katze\ta cat\n", (),
                      "en-de"),
    "csv": ("a.csv", 'source,target\n"a\n dog",ein Hund\n"a cat","eine Katze"\n', (), None),
    "semicolons": ("a.csv", "a dog;ein Hund\na cat;eine Katze\n", (), None),
    "json": ("a.jsonl", '{"source": "a dog", "target": "ein Hund"}\n'
             '{"target": "eine Katze", "source": "a cat"}\n', (), None),
    "json by name": ("a.jsonl", '{"id": 1, "t": {"x": "a dog", "y": "ein Hund"}}\n'
                     '{"id": 2, "t": {"x": "a cat", "y": "eine Katze"}}\n', ("t.x", "t.y"), None),
    "json of languages": ("a.jsonl", '{"en": "a dog", "de": "ein Hund"}\n'
                          '{"en": "a cat", "de": "eine Katze"}\n', (), None),
    "json of languages and more": ("a.jsonl", '{"id": 1, "en": "a dog", "de": "ein Hund"}\n'
                                   '{"id": 2, "en": "a cat", "de": "eine Katze"}\n', (), None),
    "json by pair": ("a.jsonl", '{"translation": {"de": "ein Hund", "fr": "", "en": "a dog"}}\n'
                     '{"translation": {"de": "eine Katze", "fr": "", "en": "a cat"}}\n', (),
                     "en-de"),
    "no ending": ("pairs", "a dog\tein Hund\na cat\teine Katze\n", (), None),
}  # fmt: skip


@pytest.mark.parametrize("case", WAYS)
@pytest.mark.parametrize("compressed", [False, True])
def test_pairs_of_every_table(tmp_path: Path, case: str, compressed: bool) -> None:
    name, content, columns, pair = WAYS[case]
    path = tmp_path / (f"{name}.gz" if compressed else name)
    path.write_bytes(gzip.compress(content.encode()) if compressed else content.encode())
    assert read_pairs([path], columns=columns, pair=pair) == PAIRS


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columnar_files(tmp_path: Path, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"n": n, "en": pair.source, "de": pair.target, "label": n % 2, "text": pair.source}
            for n, pair in enumerate(PAIRS)]  # fmt: skip
    table, path = pyarrow.Table.from_pylist(rows), tmp_path / f"a.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
    assert read_pairs([path], pair="en-de") == PAIRS
    assert read_pairs([path], columns=("2", "3")) == PAIRS
    assert read_labelled(path) == [LabelledText("0", "a dog"), LabelledText("1", "a cat")]
    assert "".join(text_chunks([path])) == "a dog\na cat\n"
    with pytest.raises(DataError, match="line 1: there is no column 'fr'"):
        read_pairs([path], columns=("en", "fr"))
    path.write_bytes(b"nothing")
    with pytest.raises(DataError, match=f"not a file in the {kind.capitalize()} format"):
        read_pairs([path])
    with pytest.raises(DataError, match="there is no such file"):
        read_pairs([tmp_path / f"gone.{kind}"])


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        SettingsError, match=r"a.parquet: Parquet files are read with pyarrow, whic"
    ):
        read_pairs([tmp_path / "a.parquet"])


# The name of a file, its content, columns, and what the message says.
WRONG: dict[str, tuple[str, str, Sequence[str], str]] = {
    "unknown column": ("a.tsv", "en\tger\na\tb\n", ("en", "ge"),
                       r"a.tsv, line 1: there is no column 'ge'. Did you mean 'ger'"),
    "too few chosen": ("a.tsv", "a\tb\n", ("1",), r"1 column chosen \(1\) where 2 are wanted"),
    "column 0": ("a.tsv", "a\tb\n", ("0", "1"), "there is no column 0. Columns are counted from 1"),
    "far column": ("a.csv", "a,b\n", ("1", "5"), "line 1: 2 columns where 5 are needed"),
    "unknown kind": ("a.pdf", "a\nb\n", (), r"kind of file is not clear: its ending is '.pdf'"),
    "empty cell": ("a.csv", "a,\n", (), "line 1: column 2 is empty. Fill it in or .*skip_bad=true"),
    "null": ("a.jsonl", '{"source": "a", "target": null}', (), "line 1: the target is empty"),
    "fields": ("a.jsonl", '{"a": "b"}', (), r"the line has no source and target \(but a\)"),
    "empty file": ("a.csv", "", (), "the file is empty"),
    "open quote": ("a.csv", 'a,b\n"c,' + "d" * 200_000, (), "this is not CSV"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_name_file_line_and_remedy(tmp_path: Path, case: str) -> None:
    name, content, columns, message = WRONG[case]
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_pairs([tmp_path / name], columns=columns)


def test_bad_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\nc\n\t \nd\te\nf\t" + "w " * 9 + "\n\ng\th\n", encoding="utf-8")
    left_out = LeftOut(refuse=False)
    pairs = read_pairs([path], max_words=5, left_out=left_out)
    assert [pair.source for pair in pairs] == ["a", "d", "g"]
    assert left_out.counts == {"too few columns": 2, "empty": 1, "more than 5 words": 1}
    assert left_out.lines()[0] == f"2 left out: too few columns (as in {path}, line 2)."
    for name, text in {"s": "a\n\nb\nc\n", "t": "A\nx\n\nC\n\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    left_out = LeftOut(refuse=False)
    found = list(iterate_pairs([tmp_path / "s", tmp_path / "t"], left_out=left_out))
    assert found == [SentencePair("a", "A"), SentencePair("c", "C")]
    assert left_out.counts == {"empty": 2}


def test_two_words_are_no_header(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("no\tno\nit\tlo\n", encoding="utf-8")
    assert read_pairs([path]) == [SentencePair("no", "no"), SentencePair("it", "lo")]


def test_several_files(tmp_path: Path) -> None:
    files = {"a.en": "a", "a.de": "A", "b.en": "b", "b.de": "B", "c.tsv": "c\tC"}
    files["d.jsonl"] = '{"source": "d", "target": "D"}'
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def sources(*names: str, pair: str | None = None) -> list[str]:
        return [one.source for one in read_pairs([tmp_path / name for name in names], pair=pair)]

    assert sources("c.tsv", "d.jsonl") == ["c", "d"]
    assert sources("a.en", "b.en", "a.de", "b.de") == ["a", "b"]
    assert sources("a.en", "a.de", "b.en", "b.de", pair="de-en") == ["A", "B"]
    assert sources("a.de", "a.en", pair="en-de") == ["a"]
    with pytest.raises(DataError, match="a file with one sentence per line has no columns"):
        read_pairs([tmp_path / "a.en", tmp_path / "a.de"], columns=("1", "2"))


def test_what_is_held_out_depends_on_seed_and_sentence_alone() -> None:
    pairs = [SentencePair(f"s{n // 2}", f"t{n}") for n in range(200)]
    train, valid, test = hold_out(pairs, sizes=[20, 10], seed=1)
    assert [len(part) for part in (train, valid, test)] == [170, 20, 10]
    sources = [{pair.source for pair in part} for part in (train, valid, test)]
    assert not sources[0] & sources[1] and not sources[0] & sources[2]
    assert not sources[1] & sources[2]
    turned = hold_out(pairs[::-1], sizes=[20, 10], seed=1)
    assert {p.source for p in turned[1]} == sources[1]
    assert {p.source for p in hold_out(pairs, sizes=[20, 10], seed=2)[1]} != sources[1]
    same = [SentencePair("s", f"t{n}") for n in range(30)]
    assert [len(part) for part in hold_out(same, sizes=[3, 3], seed=1)] == [24, 3, 3]


def test_labels_and_texts_by_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,stars,body\n1,5,"good, really"\n2,1,bad\n', encoding="utf-8")
    expected = [LabelledText("5", "good, really"), LabelledText("1", "bad")]
    assert read_labelled(path, columns=("body", "stars")) == expected
    with pytest.raises(DataError, match=r"3 columns instead of 2.*--columns text,label"):
        read_labelled(path)
    path.write_text("Text,extra,Label\nfine,x,good\npoor,x,bad\n", encoding="utf-8")
    assert read_labelled(path)[1] == LabelledText("bad", "poor")
    assert "".join(text_chunks([path], columns=("Text",))) == "fine\npoor\n"
    with pytest.raises(DataError, match="a TMX file has no labels"):
        read_labelled(tmp_path / "a.tmx")


def damaged_tables(folder: Path) -> dict[str, Path]:
    """Files whose columns hold what no text or time is; writers do not check it."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    raw = pyarrow.array([b"\xff\xfe"])
    late = pyarrow.array([2**62], pyarrow.int64())
    columns = {
        "no-utf-8": pyarrow.Array.from_buffers(pyarrow.string(), 1, raw.buffers()),
        "ends-outside": pyarrow.array(["x" * 777]),
        "time": late.cast(pyarrow.timestamp("us")),
        "zone": late.cast(pyarrow.timestamp("us", "Nowhere/Land")),
        "duration": late.cast(pyarrow.duration("s")),
    }
    found = {}
    for name, column in columns.items():
        table = pyarrow.table({"source": column, "target": ["b"]})
        found[f"{name}.arrow"] = folder / f"{name}.arrow"
        with pyarrow.ipc.new_file(str(found[f"{name}.arrow"]), table.schema) as file:
            file.write_table(table)
        if name in ("no-utf-8", "time"):
            found[f"{name}.parquet"] = folder / f"{name}.parquet"
            parquet.write_table(table, found[f"{name}.parquet"])
    path = found["ends-outside.arrow"]
    ends, wrong = struct.pack("<ii", 0, 777), struct.pack("<ii", 0, 2**30)
    path.write_bytes(path.read_bytes().replace(ends, wrong))
    return found


def test_damaged_columns_are_refused_before_they_are_read(tmp_path: Path) -> None:
    for path in damaged_tables(tmp_path).values():
        with pytest.raises(DataError, match=r"is not a file in the (Arrow|Parquet) format, or it"):
            read_pairs([path])
