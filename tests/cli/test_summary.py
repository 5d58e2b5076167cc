from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SMALL = ["--set", "model.hidden=6", "--set", "model.embedding=4", "--set", "model.source_vocab=10",
         "--set", "model.target_vocab=10"]  # fmt: skip


def test_json(run: Any) -> None:
    found = run("summary", "seq2seq", *SMALL, "--json").json
    # Embeddings 80, encoder 2 * (4h(h+i)+4h) with h = 3, decoder 4h(h+i)+4h with h = 6, output 70.
    assert found["parameters"]["total"] == 80 + 2 * 96 + 264 + 70
    assert sum(layer["parameters"] for layer in found["layers"]) == found["parameters"]["total"]
    columns = {"name", "kind", "shape", "parameters", "output_shape", "connected_to"}
    assert found["layers"][0].keys() == columns


def test_table(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out = run("summary", "seq2seq", *SMALL).out
    assert "encoder.embedding" in out
    assert "606" in out


def test_of_a_run(run: Any, toy_run: Path) -> None:
    assert run("summary", toy_run, "--json").json["parameters"]["total"] > 1000


def test_mistakes(refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    assert "--set has no effect" in refuse("summary", toy_run, "--set", "model.hidden=4")
    assert "Did you mean 'seq2seq'" in refuse("summary", "seq2sec")
    assert "Did you mean 'hidden'" in refuse("summary", "seq2seq", "--set", "model.hiden=4")
    assert "it has no recipe.toml" in refuse("summary", tmp_path)
    assert "Cannot read the recipe" in refuse("summary", tmp_path / "no.toml")
