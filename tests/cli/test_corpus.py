from __future__ import annotations

from pathlib import Path
from typing import Any

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
