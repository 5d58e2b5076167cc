from __future__ import annotations

from pathlib import Path
from typing import Any

TEXT = "badal kofen migon"


def test_both_outputs_are_shown(run: Any, toy_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "maps.png"
    lines = run("intervene", toy_run, TEXT, "--swap", "badal=migon", "--out", path).lines
    assert lines[1] == "before   LADAB NEFOK NOGIM"
    assert lines[2].startswith("after    NOGIM")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_json(run: Any, toy_run: Path) -> None:
    found = run("intervene", toy_run, TEXT, "--force", "0=kofen", "--json").json
    assert found["after"]["text"].startswith("NEFOK")
    assert found["interventions"] == ["force 0=kofen"]
    assert len(found["kept"]) == len(found["before"]["tokens"])


def test_importance(run: Any, toy_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "heads.svg"
    answer = run("intervene", toy_run, "--importance", "--sentences", 4, "--out", path)
    assert "BLEU" in answer.lines[0]
    assert path.is_file()
    assert run("intervene", toy_run, "--importance", "--sentences", 4, "--json").json["heads"]


def test_refusals(refuse: Any, toy_run: Path) -> None:
    assert "Give a text" in refuse("intervene", toy_run)
    assert "nothing to change" in refuse("intervene", toy_run, TEXT)
    assert "names no heads" in refuse("intervene", toy_run, TEXT, "--off", "first")
