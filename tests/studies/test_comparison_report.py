from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from regard.corpora.parallel import SentencePair
from regard.studies.compare import Comparison, compare
from regard.studies.comparison_report import most_different, write_comparison


@pytest.fixture(scope="module")
def comparison(toy_run: Path, random_transformer_run: Path) -> Comparison:
    runs = {"untrained": random_transformer_run, "attention": toy_run}
    return compare(runs, rounds=1, samples=50)


@pytest.fixture(scope="module")
def folder(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("comparison") / "new"
    paths = write_comparison(comparison, place, title="Two <models>")
    assert all(path.stat().st_size > 0 for path in paths)
    assert paths[0].name == "comparison.html"
    assert set(paths) == set(place.iterdir())
    return place


def test_the_page_has_all_parts_and_needs_no_network(folder: Path):
    page = (folder / "comparison.html").read_text(encoding="utf-8")
    for part in (
        "Two &lt;models&gt;",
        "Scores on 30 sentences",
        "bs:50|seed:12345",
        "Short and long sentences",
        "Where the models differ most",
        "The attention of each model",
        "minutes of training",
        "Differences between the recipes",
        "model.family",
    ):
        assert part in page, part
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page


def test_settings_that_nobody_chose_or_all_share_are_left_out(folder: Path):
    page = (folder / "comparison.html").read_text(encoding="utf-8")
    assert "model.sinusoids" not in page
    assert "training.seed" not in page


def test_the_numbers_are_there_for_programs(folder: Path, comparison: Comparison):
    found = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    assert found == comparison.to_dict()
    with (folder / "comparison.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == ["untrained", "attention"]
    assert float(rows[1]["bleu"]) == comparison.rows()[1]["bleu"]
    assert rows[0]["p_value"] == ""
    with (folder / "by-length.csv").open(encoding="utf-8", newline="") as file:
        assert {row["model"] for row in csv.DictReader(file)} == {"untrained", "attention"}


def test_the_sentences_that_differ_most_come_first(comparison: Comparison):
    rows = most_different(comparison, 30)
    right = [
        comparison.contestants["attention"].outputs[row] == comparison.pairs[row].target
        for row in rows
    ]
    assert len(set(rows)) == 30
    assert right[0]
    assert most_different(comparison, 3) == rows[:3]


def test_sentences_too_long_to_read_are_not_shown(comparison: Comparison):
    pairs = [SentencePair("lang " * 50, "x"), *comparison.pairs[1:]]
    assert 0 not in most_different(replace(comparison, pairs=pairs), 30)


def test_the_same_recipe_twice_and_nothing_to_look_at(
    comparison: Comparison, tmp_path: Path, toy_run: Path
):
    same = replace(comparison.contestants["attention"], run=comparison.first.run)
    pairs = [replace(pair, source="zwei Wörter") for pair in comparison.pairs]
    twins = replace(comparison, contestants={"untrained": same, "again": same}, pairs=pairs)
    write_comparison(twins, tmp_path, title="Twins")
    page = (tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert "The recipes are the same." in page
    assert "The attention of each model" not in page
    assert "validation BLEU" not in page  # the run that was never trained has no history
