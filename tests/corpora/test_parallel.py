from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from regard.base.errors import DataError, SettingsError
from regard.corpora.parallel import SentencePair, drawn_evenly, read_pairs, read_parallel

LONG = "word " * 100_000


def write(folder: Path, **files: str) -> dict[str, Path]:
    paths = {name: folder / name for name in files}
    for name, content in files.items():
        paths[name].write_text(content, encoding="utf-8", newline="")
    return paths


def test_two_line_files(tmp_path: Path) -> None:
    paths = write(tmp_path, en="the  cat \na dog\n", de="die Katze\r\nein Hund")
    expected = [SentencePair("the  cat ", "die Katze"), SentencePair("a dog", "ein Hund")]
    assert read_parallel(paths["en"], paths["de"]) == expected
    assert read_pairs([paths["en"], paths["de"]]) == expected


def test_compressed_and_plain_together(tmp_path: Path) -> None:
    (tmp_path / "en.gz").write_bytes(gzip.compress(b"a\n"))
    (tmp_path / "de").write_bytes(b"b\n")
    assert read_parallel(tmp_path / "en.gz", tmp_path / "de") == [SentencePair("a", "b")]


def test_empty_lines_at_the_end_do_not_count(tmp_path: Path) -> None:
    paths = write(tmp_path, en="a\nb\n\n \n", de="c\nd\n", tsv="a\tb\n\n\n")
    assert len(read_parallel(paths["en"], paths["de"])) == 2
    assert len(read_pairs([paths["tsv"]])) == 1


def test_alignment(tmp_path: Path) -> None:
    paths = write(tmp_path, en="a b\nc\n\n", de="A B\nC\n", align="0-0 1-1\n\n\n")
    pairs = read_parallel(paths["en"], paths["de"], alignment=paths["align"])
    assert [pair.alignment for pair in pairs] == [((0, 0), (1, 1)), ()]


@pytest.mark.parametrize(
    ("align", "message"),
    [
        pytest.param("0-0\n", r"align: has 1 lines for 2 sentence pairs", id="too few lines"),
        pytest.param("0-0\n0-0\n0-0\n", r"align: has 3 lines for 2", id="too many lines"),
        pytest.param("0-0\n0-1\n", r"align, line 2: the link 0-1 points past the 1", id="range"),
        pytest.param("0-0\nx\n", r"align, line 2: 'x' is not an alignment link", id="syntax"),
    ],
)
def test_alignments_that_cannot_be_used(tmp_path: Path, align: str, message: str) -> None:
    paths = write(tmp_path, en="a b\nc\n", de="A B\nC\n", align=align)
    with pytest.raises(DataError, match=message):
        read_parallel(paths["en"], paths["de"], alignment=paths["align"])


@pytest.mark.parametrize(
    ("en", "de", "message"),
    [
        pytest.param(
            "a\nb\nc\n", "d\ne\n", r"en: has 3 lines, but .*de has 2\. Each line must", id="counts"
        ),
        pytest.param(
            "a\n\nc\n",
            "d\ne\nf\n",
            r"en, line 2: the line is empty\. Fill it in, or remove .* in .*de",
            id="empty source line",
        ),
        pytest.param("a\nb\n", " \nd\n", r"de, line 1: the line is empty", id="empty target line"),
        pytest.param("a\n\nb\n", "c\n\nd\n", r"en, line 2: the line is empty", id="both empty"),
        pytest.param("\n\n\n", "a\n", r"en: the file holds only empty lines", id="only empty"),
        pytest.param(
            f"a\n{LONG}\n",
            "b\nc\n",
            r"en, line 2: the line has 100000 words, more than the 5000 allowed\. Is a line break",
            id="long line",
        ),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, en: str, de: str, message: str) -> None:
    paths = write(tmp_path, en=en, de=de)
    with pytest.raises(DataError, match=message):
        read_parallel(paths["en"], paths["de"])


def test_limit_of_words(tmp_path: Path) -> None:
    paths = write(tmp_path, en="a b c\n", de="d\n")
    assert len(read_parallel(paths["en"], paths["de"], max_words=3)) == 1
    with pytest.raises(DataError, match="has 3 words, more than the 2 allowed"):
        read_parallel(paths["en"], paths["de"], max_words=2)


def test_tsv(tmp_path: Path) -> None:
    path = write(tmp_path, tsv="a b\tA B\tnote\nc\tC\t\n")["tsv"]
    assert read_pairs([path]) == [SentencePair("a b", "A B"), SentencePair("c", "C")]
    assert read_pairs([path], columns=("2", "1"))[1] == SentencePair("C", "c")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("a\tb\nc\n", r"tsv, line 2: 1 column where 2 are needed\. Source", id="few"),
        pytest.param("a\tb\n\nc\td\n", r"tsv, line 2: 1 column where 2", id="empty line"),
        pytest.param("a\t \n", r"tsv, line 1: column 2 is empty\. Fill", id="empty target"),
        pytest.param("\tb\n", r"tsv, line 1: column 1 is empty", id="empty source"),
        pytest.param(f"a\t{LONG}\n", r"tsv, line 1: the line has 100000 words", id="long line"),
        pytest.param("", r"tsv: the file is empty", id="empty file"),
    ],
)
def test_tsv_that_cannot_be_used(tmp_path: Path, content: str, message: str) -> None:
    path = write(tmp_path, tsv=content)["tsv"]
    with pytest.raises(DataError, match=message):
        read_pairs([path])


def test_more_columns_needed(tmp_path: Path) -> None:
    path = write(tmp_path, tsv="a\tb\n")["tsv"]
    with pytest.raises(DataError, match="2 columns where 4 are needed"):
        read_pairs([path], columns=("1", "4"))


@pytest.mark.parametrize("count", [0, 3])
def test_number_of_files(count: int) -> None:
    with pytest.raises(SettingsError, match=rf"one file \(TSV.*two line files.*; {count} files"):
        read_pairs([Path("x")] * count)


TMX = """<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="de"><seg>ein <hi>Hund</hi></seg></tuv><tuv xml:lang="en"><seg>a
 dog</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>alone</seg></tuv></tu></body></tmx>"""
PO = """msgid ""
msgstr "Language: de"

msgid "a dog"
msgstr "ein Hund"

#, fuzzy
msgid "a cat"
msgstr "ein Hund"

msgid "alone"
msgstr ""
"""
XLIFF = """<xliff version="1.2"><file><body><trans-unit id="1"><source>a <x id="1"/>dog</source>
<target>ein <x id="1"/>Hund</target></trans-unit>
<trans-unit id="2"><source>alone</source></trans-unit></body></file></xliff>"""
JSONL = '{"source": "a dog", "target": "ein Hund"}\n\n'
HUGGING_FACE = '{"translation": {"en": "a dog", "de": "ein Hund"}}\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pairs.tmx", TMX),
        ("pairs.po", PO),
        ("pairs.xlf", XLIFF),
        ("pairs.jsonl", JSONL),
        ("pairs.ndjson", HUGGING_FACE),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_documents_with_both_languages(
    tmp_path: Path, name: str, content: str, compressed: bool
) -> None:
    data = content.encode()
    path = tmp_path / (f"{name}.gz" if compressed else name)
    path.write_bytes(gzip.compress(data) if compressed else data)
    assert read_pairs([path]) == [SentencePair("a dog", "ein Hund")]
    with pytest.raises(DataError, match="has 2 words, more than the 1 allowed"):
        read_pairs([path], max_words=1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("x.tmx", "<tmx>", r"x\.tmx, line 1: not well-formed XML", id="XML"),
        pytest.param("x.po", 'msgid "a"\nmsgstr ""\n', "holds no translated sentence", id="none"),
        pytest.param("x.jsonl", '{"source": "a"}\n', "line 1: the line has no source and", id="no"),
        pytest.param("x.jsonl", "a\n", "x.jsonl, line 1: not valid JSON", id="JSON"),
    ],
)
def test_documents_that_cannot_be_used(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_pairs([tmp_path / name])


def test_an_even_draw_is_seeded_and_in_order() -> None:
    pairs = [SentencePair(f"{row:04}", "x") for row in range(1000)]
    drawn = drawn_evenly(pairs, 100, seed=1)
    sources = [pair.source for pair in drawn]
    assert sources == sorted(set(sources))
    assert len(sources) == 100
    assert drawn == drawn_evenly(pairs, 100, seed=1) != drawn_evenly(pairs, 100, seed=2)
    assert drawn_evenly(pairs, 1000, seed=1) is pairs
