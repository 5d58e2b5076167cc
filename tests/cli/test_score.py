from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def files(toy_corpus: Path) -> list[object]:
    reference = toy_corpus / "test.tgt"
    return ["--system", reference, "--reference", reference]


def test_scores_carry_their_signature(run: Any, files: list[object]) -> None:
    first, second = run("score", *files).lines
    assert "BLEU" in first
    assert "100.0" in first
    assert "tok:13a" in first
    assert "chrF" in second


def test_by_length(run: Any, files: list[object], toy_corpus: Path) -> None:
    source = ["--source", toy_corpus / "test.src", "--by-length"]
    assert "sentences" in run("score", *files, *source).out
    found = run("score", *files, *source, "--json").json
    assert found["bleu"]["value"] == pytest.approx(100)
    assert found["bleu"]["signature"]
    assert sum(band["sentences"] for band in found["by_length"]) == 30


def test_mistakes(refuse: Any, files: list[object], toy_corpus: Path, tmp_path: Path) -> None:
    short, bad, empty = tmp_path / "short", tmp_path / "bad", tmp_path / "empty"
    short.write_text("LADAB\n", encoding="utf-8")
    bad.write_bytes(b"a\n\xff\n")
    empty.write_bytes(b"")
    reference = toy_corpus / "test.tgt"

    def message(system: Path) -> str:
        return str(refuse("score", "--system", system, "--reference", reference))

    assert "--by-length needs the source" in refuse("score", *files, "--by-length")
    assert "no such file" in message(tmp_path / "none")
    assert f"{bad}, line 2: invalid UTF-8" in message(bad)
    assert f"{empty}: the file is empty" in message(empty)
    unequal = message(short)
    assert "1 " in unequal
    assert "30 " in unequal
