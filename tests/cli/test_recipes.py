from __future__ import annotations

from pathlib import Path
from typing import Any


def test_list(run: Any) -> None:
    assert any(line.startswith("seq2seq-attention ") for line in run("recipes").lines)
    assert "seq2seq" in run("recipes", "--json").json


def test_a_recipe_in_full_can_be_used_as_a_file(run: Any, tmp_path: Path) -> None:
    text = run("recipes", "seq2seq-attention").out
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    whole = run("recipes", "seq2seq-attention", "--json").json
    assert whole["model"]["attention"] == "dot"
    assert run("recipes", path, "--json").json == whole


def test_mistakes(refuse: Any) -> None:
    assert "Did you mean 'seq2seq'" in refuse("recipes", "seq2sec")
