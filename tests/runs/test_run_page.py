from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.base.errors import RunError
from regard.runs.report import histories_of
from regard.runs.run import Run


def test_a_run_shows_what_it_is_how_it_learned_and_what_was_found(toy_run: Path) -> None:
    shown = Run.open(toy_run)._repr_html_()
    for part in ("translate", str(toy_run), "BLEU", "tok:13a", "<svg", "validation BLEU"):
        assert part in shown


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    recipe = 'task = "forecast"\ntitle = "<b>x</b>"'
    (tmp_path / "recipe.toml").write_text(recipe, encoding="utf-8")
    return tmp_path


def test_a_run_without_training_shows_its_recipe(bare: Path) -> None:
    shown = Run.open(bare)._repr_html_()
    assert "&lt;b&gt;x&lt;/b&gt;" in shown
    assert "<svg" not in shown
    with pytest.raises(RunError, match="has no record of its training yet"):
        histories_of(bare)


def test_numbers_of_a_test_are_shown_and_several_seeds_drawn(bare: Path) -> None:
    (bare / "test.json").write_text(json.dumps({"mse": 0.01234567, "name": "x"}), encoding="utf-8")
    row = {"kind": "valid", "step": 1, "seconds": 1.0, "loss": 0.5, "accuracy": 0.7}
    for seed in ("0001", "0002"):
        (bare / "seeds" / seed).mkdir(parents=True)
        (bare / "seeds" / seed / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    assert list(histories_of(bare)) == ["seed 1", "seed 2"]
    shown = Run.open(bare)._repr_html_()
    assert "0.01235" in shown
    assert "seed 2" in shown
