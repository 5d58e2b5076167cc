from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest


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


def test_every_key_is_shown_with_its_description(run: Any) -> None:
    text = run("recipes", "transformer-tiny").out
    assert "# stop after this many minutes\n#minutes = (not set)\n" in text
    assert "# largest number of updates\n#steps = 10000\n" in text  # a default
    assert "# layers of the encoder, and of the decoder\nlayers = 4\n" in text  # set by the recipe
    assert "[source, target]" in text
    keys = run("recipes", "transformer-tiny", "--json").json["keys"]
    assert keys["training.minutes"] == {
        "description": "stop after this many minutes",
        "default": None,
        "value": None,
        "given": False,
    }
    assert keys["model.layers"]["default"] == 6
    assert keys["model.layers"]["value"] == 4
    assert keys["training.schedule"]["choices"] == ["constant", "inverse-sqrt", "linear", "cosine"]


def test_on_a_terminal_a_recipe_is_a_table(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    text = re.sub(r"\x1b\[[0-9;]*m", "", run("recipes", "transformer-tiny").out)
    assert re.search(r"^minutes +- +stop after this many minutes *$", text, re.MULTILINE)
    assert re.search(r"^layers +4 +layers of the encoder", text, re.MULTILINE)
    assert "default 6" in text
    assert "[source, target]" in re.sub(r"\s+", " ", text)
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_word_finds_settings_of_all_recipes(run: Any, refuse: Any) -> None:
    lines = run("recipes", "--search", "minutes").lines
    assert lines[0] == "training.minutes = -"
    assert lines[1].strip() == "stop after this many minutes"
    assert "task: classify-text, forecast, language-model, translate" in lines[2]
    found = run("recipes", "--search", "minutes", "--json").json
    assert found[0]["key"] == "training.minutes"
    assert found[0]["recipes"]["demo-plain"] == 1.3
    one = run("recipes", "gat-cora", "--search", "minutes", "--json").json
    assert [*one[0]["recipes"]] == ["gat-cora"]
    assert "No setting has 'minuts' in its name. Did you mean 'minutes'?" in refuse(
        "recipes", "--search", "minuts"
    )
    assert "regard recipes NAME" in refuse("recipes", "--search", "xyzzyx")
