"""The demo, cut short: everything that it shows is there, and a second call trains nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.cli.app import main

QUICK = [
    *("--set", "training.steps=12"),
    *("--set", "training.validate_every=6"),
    *("--set", "training.validate_sentences=5"),
    *("--set", "data.grammar.size=300"),
    *("--set", "data.grammar.valid_size=10"),
    *("--set", "data.grammar.test_size=20"),
    *("--set", "model.hidden=16"),
]


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    assert stopped.value.code in (0, None)


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "runs"
    run("demo", "--out", str(folder), *QUICK)
    return folder


def test_it_leaves_two_runs_and_a_report(demo_folder: Path) -> None:
    for name in ("plain", "attention"):
        scores = json.loads((demo_folder / name / "test.json").read_text())
        assert scores["bleu"]["signature"]
    page = (demo_folder / "report.html").read_text()
    for part in ("BLEU by the length", "What attention looks at", "Best translations", "Recipe"):
        assert part in page


def test_a_second_call_shows_the_same_without_training(
    demo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (demo_folder / "attention" / "best" / "model.safetensors").stat().st_mtime_ns
    run("demo", "--out", str(demo_folder), *QUICK)
    shown = capsys.readouterr().out
    assert "BLEU by sentence length" in shown
    assert "source" in shown
    assert "report.html" in shown
    assert (demo_folder / "attention" / "best" / "model.safetensors").stat().st_mtime_ns == before


def test_results_as_json(demo_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("demo", "--out", str(demo_folder), "--json", *QUICK)
    results = json.loads(capsys.readouterr().out)
    assert set(results) == {"plain", "attention"}
    assert results["attention"]["parameters"] > results["plain"]["parameters"]
    assert results["attention"]["test"]["alignment_error_rate"]["name"] == "AER"
