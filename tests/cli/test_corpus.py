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


def test_mistakes(refuse: Any, tmp_path: Path) -> None:
    out = ["--out", tmp_path / "data"]
    assert "Did you mean 'grammar'" in refuse("corpus", "gramar", *out)
    assert "Did you mean 'small'" in refuse("corpus", "grammar", "--words", "smal", *out)
    wrong = refuse("corpus", "grammar", "--min-words", 9, "--max-words", 5, *out)
    assert "--min-words (9) must not exceed --max-words (5)" in wrong
    assert "en-xx" in refuse("corpus", "grammar", "--pair", "en-xx", *out)
    assert not (tmp_path / "data").exists()
