from __future__ import annotations

from pathlib import Path
from typing import Any

TEXT = "badal kofen migon"


def test_all_methods_side_by_side(run: Any, toy_run: Path) -> None:
    out = run("explain", toy_run, TEXT).out
    for word in ("attention", "occlusion", "LADAB", "badal"):
        assert word in out
    found = run("explain", toy_run, TEXT, "--json").json
    assert found[0]["method"] == "attention"


def test_one_method(run: Any, toy_run: Path, tmp_path: Path) -> None:
    assert "NOGIM" in run("explain", toy_run, TEXT, "--method", "occlusion").out
    path = tmp_path / "map.svg"
    answer = run("explain", toy_run, TEXT, "--method", "attention", "--out", path)
    assert answer.lines[-1] == f"Wrote {path}"
    assert path.is_file()


def test_grades(run: Any, toy_run: Path) -> None:
    options = ["--grade", "--sentences", 2, "--method", "attention"]
    assert "insertion" in run("explain", toy_run, *options).out
    assert run("explain", toy_run, *options, "--json").json["methods"][0]["method"] == "attention"


def test_refusals(refuse: Any, toy_run: Path) -> None:
    assert "Give a sentence" in refuse("explain", toy_run)
    assert "name it, as --method" in refuse("explain", toy_run, TEXT, "--out", "map.png")
