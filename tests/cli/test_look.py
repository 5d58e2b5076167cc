from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TEXT = "badal kofen migon"


def test_in_the_terminal(run: Any, toy_run: Path) -> None:
    out = run("look", toy_run, TEXT).out
    for word in (*TEXT.split(), "LADAB", "NEFOK", "NOGIM"):
        assert word in out
    assert out.endswith("LADAB NEFOK NOGIM\n")


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".csv", b""), (".json", b"{")],
)
def test_as_a_file(run: Any, toy_run: Path, tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"map{suffix}"
    answer = run("look", toy_run, TEXT, "--out", path)
    assert answer.out == f"LADAB NEFOK NOGIM\nWrote {path}\n"
    assert path.read_bytes().lstrip().startswith(start)
    assert path.stat().st_size > 50


def test_json_by_words_and_by_pieces(run: Any, toy_run: Path) -> None:
    words = run("look", toy_run, TEXT, "--json").json["attention"]
    assert (words["source"], words["target"]) == (TEXT.split(), ["LADAB", "NEFOK", "NOGIM"])
    pieces = run("look", toy_run, TEXT, "--pieces", "--json").json["attention"]
    assert pieces["source"][-1] == pieces["target"][-1] == "</s>"


def test_mistakes(refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    assert "the text is empty" in refuse("look", toy_run, " ")
    assert "There is no run at" in refuse("look", tmp_path / "no", "x")
    assert ".gif" in refuse("look", toy_run, TEXT, "--out", tmp_path / "map.gif")
