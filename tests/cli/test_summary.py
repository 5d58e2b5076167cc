from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import regard

SMALL = ["--set", "model.hidden=6", "--set", "model.embedding=4", "--set", "model.source_vocab=10",
         "--set", "model.target_vocab=10"]  # fmt: skip


def test_json(run: Any) -> None:
    found = run("summary", "seq2seq", *SMALL, "--json").json
    # Embeddings 80, encoder 2 * (4h(h+i)+4h) with h = 3, decoder 4h(h+i)+4h with h = 6, output 70.
    assert found["parameters"]["total"] == 80 + 2 * 96 + 264 + 70
    assert sum(layer["parameters"] for layer in found["layers"]) == found["parameters"]["total"]
    columns = {"name", "kind", "parameters", "bytes", "trainable", "output_shape", "connected_to"}
    assert columns <= found["layers"][0].keys()
    assert found["parameters"]["bytes"] == 4 * found["parameters"]["total"]
    sizes = {row["name"]: row["shape"] for row in found["weights"]}
    assert sizes["encoder.embedding"] == "10x4"


def test_table(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out = run("summary", "seq2seq", *SMALL).out
    for wanted in ("encoder", "embedding", "(batch, source, 6)", "layer (kind)", "connected to",
                   "bytes", "trainable", "606 parameters"):  # fmt: skip
        assert wanted in out
    assert "encoder.embedding" in run("summary", "seq2seq", *SMALL, "--weights").out


def test_equal_layers_are_one_row(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "130")
    out = run("summary", "transformer-tiny").out
    assert "0-3.cross_attention" in out and "4 × 66,048" in out and "shared" in out
    monkeypatch.setenv("COLUMNS", "80")
    assert "(source," in run("summary", "transformer-tiny").out


def test_a_diagram(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.svg"
    assert f"Wrote {path}" in run("summary", "seq2seq", *SMALL, "--diagram", path).out
    assert "Bidirectional LSTM" in path.read_text(encoding="utf-8")


def test_what_a_recipe_freezes_is_not_trainable(run: Any) -> None:
    found = run("summary", "seq2seq", *SMALL, "--set", "training.freeze=['encoder']", "--json").json
    frozen = {row["name"] for row in found["layers"] if not row["trainable"]}
    assert frozen == {"encoder.embedding", "encoder.lstm"}
    assert found["parameters"]["trainable"] < found["parameters"]["total"]


def test_in_python(toy_run: Path, tmp_path: Path) -> None:
    found = regard.summary("seq2seq", set={"model.source_vocab": 10, "model.target_vocab": 10})
    shown = found._repr_html_()
    assert "<svg" in shown and "connected to" in shown and "Bidirectional LSTM" in shown
    found.save(tmp_path / "model.png")
    assert regard.summary(regard.find_recipe("fibonacci-rnn")).plan.parameters == 11
    assert regard.summary(toy_run).plan.trainable == regard.summary(toy_run).plan.parameters


def test_of_a_run(run: Any, toy_run: Path) -> None:
    assert run("summary", toy_run, "--json").json["parameters"]["total"] > 1000


def test_mistakes(refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    assert "--set has no effect" in refuse("summary", toy_run, "--set", "model.hidden=4")
    assert "Did you mean 'seq2seq'" in refuse("summary", "seq2sec")
    assert "Did you mean 'hidden'" in refuse("summary", "seq2seq", "--set", "model.hiden=4")
    assert "it has no recipe.toml" in refuse("summary", tmp_path)
    assert "Cannot read the recipe" in refuse("summary", tmp_path / "no.toml")
