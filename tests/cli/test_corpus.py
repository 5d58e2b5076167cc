from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SMALL = ["--size", 12, "--valid-size", 4, "--test-size", 5, "--max-words", 8, "--words", "small"]
PARTS = {"train": 12, "valid": 4, "test": 5}


def test_files(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "data"
    answer = run("corpus", "grammar", *SMALL, "--out", out)
    assert answer.code == 0
    assert answer.out.startswith("Wrote ")
    for part, size in PARTS.items():
        for end in ("en", "de", "align"):
            assert len((out / f"{part}.{end}").read_text("utf-8").splitlines()) == size


def test_json(run: Any, tmp_path: Path) -> None:
    found = run("corpus", "grammar", *SMALL, "--out", tmp_path / "data", "--json").json
    assert found["folder"] == str(tmp_path / "data")
    assert {f"{part}.en" for part in PARTS} <= set(found["files"])


def test_one_seed_gives_the_same_bytes(run: Any, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run("corpus", "grammar", *SMALL, "--seed", seed, "--out", tmp_path / name)
    a, b, c = ((tmp_path / name / "train.en").read_bytes() for name in "abc")
    assert a == b != c


def test_mistakes(run: Any, refuse: Any, tmp_path: Path) -> None:
    out = ["--out", tmp_path / "data"]
    unknown = run("corpus", "gramar", *out)
    assert (unknown.code, "Did you mean 'grammar'" in unknown.err) == (2, True)
    assert "Did you mean 'small'" in refuse("corpus", "grammar", "--words", "smal", *out)
    wrong = refuse("corpus", "grammar", "--min-words", 9, "--max-words", 5, *out)
    assert "--min-words (9) must not exceed --max-words (5)" in wrong
    assert "en-xx" in refuse("corpus", "grammar", "--pair", "en-xx", *out)
    assert not (tmp_path / "data").exists()


def test_filter_says_what_was_dropped(run: Any, tmp_path: Path) -> None:
    (tmp_path / "raw.tsv").write_text("a dog\tein Hund\na dog\tein Hund\n<b>\tx y\n", "utf-8")
    options = ["--data", tmp_path / "raw.tsv", "--set", "alignment=false"]
    answer = run("corpus", "filter", *options, "--out", tmp_path / "clean.tsv")
    assert answer.out.startswith("3 pairs read, 1 kept (33.3%)")
    found = run("corpus", "filter", *options, "--out", tmp_path / "again.tsv", "--json").json
    assert found["dropped"] == {"duplicates": 1, "markup": 1}


def lines(path: Path, *texts: str) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


def test_two_line_files_are_filtered_and_counted(run: Any, tmp_path: Path) -> None:
    en, de = lines(tmp_path / "a.en", "a dog", "yes"), lines(tmp_path / "a.de", "ein Hund", "ja")
    answer = run("corpus", "stats", "--data", en, de)
    assert answer.out.startswith("2 pairs\n"), answer.err
    assert run("corpus", "stats", "--data", en, de, "--json").json["source"]["words"] == 3
    answer = run("corpus", "filter", "--data", en, de, "--out", tmp_path / "b.tsv")
    assert answer.out.startswith("2 pairs read, 2 kept")


def test_a_corpus_is_mixed_and_split(run: Any, refuse: Any, tmp_path: Path) -> None:
    one = lines(tmp_path / "one.tsv", *(f"a {n}\tb {n}" for n in range(20)))
    two = lines(tmp_path / "two.tsv", *(f"c {n}\td {n}" for n in range(10)))
    mixed = tmp_path / "mixed.tsv"
    answer = run("corpus", "mix", one, two, "--weights", "1,2", "--size", 20, "--out", mixed)
    assert answer.out.startswith("20 pairs\n"), answer.err
    assert "50.0%" in answer.out
    parts = tmp_path / "parts"
    answer = run("corpus", "split", "--data", mixed, "--valid", 3, "--test", 2, "--out", parts)
    assert answer.out == f"Wrote 15 train, 3 valid, 2 test to {parts}\n"
    wrong = refuse("corpus", "mix", one, two, "--weights", "1,x", "--out", tmp_path / "m.tsv")
    assert "--weights 1,x: give numbers" in wrong


def test_fetch_lists_what_is_known_and_says_when_there_is_no_network(
    run: Any, refuse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.corpora.fetching.OPUS_API", "http://127.0.0.1:9/api")
    monkeypatch.setenv("no_proxy", "*")
    listed = run("corpus", "fetch").out
    assert "multi30k" in listed
    assert "opus/NAME" in listed
    out = ["--out", tmp_path / "books"]
    wrong = refuse("corpus", "fetch", "opus/Books", "--pair", "en-de", *out)
    assert "cannot be reached" in wrong
    assert "Is there a network connection?" in wrong
    assert "multi30k" in refuse("corpus", "fetch", "multi30", *out)
