from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.corpora.lines import read_lines
from regard.scoring.bleu import corpus_bleu


@pytest.fixture
def changeable(random_transformer_run: Path, tmp_path: Path) -> Path:
    """A run whose outputs are of many lengths, so that a penalty makes a difference."""
    return Path(shutil.copytree(random_transformer_run, tmp_path / "run"))


def penalties(*values: float) -> list[str]:
    return [word for value in values for word in ("--length-penalty", f"{value:g}")]


def test_the_best_is_kept_and_used(
    run: Callable[..., Any], changeable: Path, toy_corpus: Path
) -> None:
    answer = run("tune", changeable, *penalties(0.1, 0.7, 1.3), "--json").json
    assert [one["length_penalty"] for one in answer["tried"]] == [0.1, 0.7, 1.3]
    ratios = [one["length_ratio"] for one in answer["tried"]]
    assert ratios == sorted(ratios)
    assert ratios[0] < ratios[-1]
    values = [one["score"]["value"] for one in answer["tried"]]
    assert answer["best"]["score"]["value"] == max(values)
    model = regard.load(changeable)
    assert model.recipe.decoding.length_penalty == answer["best"]["length_penalty"]
    found = [one.text for one in model.translate(read_lines(toy_corpus / "valid.src"))]
    again = corpus_bleu(found, read_lines(toy_corpus / "valid.tgt")).value
    assert again == pytest.approx(max(values), abs=1e-6)


def test_it_says_what_it_tries_and_can_leave_the_run_alone(
    run: Callable[..., Any], changeable: Path, toy_corpus: Path
) -> None:
    before = (changeable / "recipe.toml").read_bytes()
    files = ["--source", toy_corpus / "test.src", "--reference", toy_corpus / "test.tgt"]
    lines = run("tune", changeable, *files, *penalties(0.2, 1), "--no-keep").lines
    assert [line.split()[2] for line in lines[:2]] == ["0.2", "1"]
    assert lines[-1].endswith(f"not kept in {changeable} (30 pairs)")
    assert (changeable / "recipe.toml").read_bytes() == before


def test_without_a_word_several_are_tried(run: Callable[..., Any], toy_run: Path) -> None:
    lines = run("tune", toy_run, "--no-keep").lines
    assert len(lines) == 9
    assert lines[-1].startswith("decoding.length_penalty = 1,")  # all the same: nothing to gain


def test_a_greedy_search_has_no_length_penalty(
    refuse: Callable[..., str], changeable: Path
) -> None:
    path = changeable / "recipe.toml"
    path.write_text(path.read_text().replace("beam = 5", "beam = 1"))
    assert "matters to a beam search alone" in refuse("tune", changeable)


def test_an_empty_file_is_no_choice(
    refuse: Callable[..., str], changeable: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    assert refuse("tune", changeable, "--source", empty, "--reference", empty)


def test_both_files_are_needed(refuse: Callable[..., str], toy_run: Path, tmp_path: Path) -> None:
    assert "or neither" in refuse("tune", toy_run, "--source", tmp_path / "source")
