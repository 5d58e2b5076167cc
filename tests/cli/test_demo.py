"""The demo, cut short: everything that it shows is there, and a second call trains nothing."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from regard.cli.app import main

QUICK = [
    *("--set", "training.steps=12"),
    *("--set", "training.validate_every=6"),
    *("--set", "training.validate_sentences=5"),
    *("--set", "data.grammar.size=300"),
    *("--set", "data.grammar.valid_size=10"),
    *("--set", "data.grammar.test_size=20"),
]


MODELS = ("plain", "attention", "transformer")


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    assert stopped.value.code in (0, None)


class Demo(NamedTuple):
    folder: Path
    shown: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo") / "runs"
    shown = StringIO()
    with redirect_stdout(shown):
        run("demo", "--out", str(folder), *QUICK)
    return Demo(folder, shown.getvalue())


def test_it_leaves_three_runs_and_a_report(demo: Demo) -> None:
    for name in MODELS:
        scores = json.loads((demo.folder / name / "test.json").read_text())
        assert scores["bleu"]["signature"]
    page = (demo.folder / "report.html").read_text()
    for part in ("BLEU by the length", "What attention looks at", "Best translations", "Recipe"):
        assert part in page
    for name in MODELS:
        assert f"How {name} was made" in page
        assert f"How {name} was made" in (demo.folder / name / "report.html").read_text()


def test_a_second_call_shows_the_same_without_training(
    demo: Demo, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = [demo.folder / name / "best" / "model.safetensors" for name in MODELS]
    before = [path.stat().st_mtime_ns for path in weights]
    run("demo", "--out", str(demo.folder), *QUICK)
    for shown in (demo.shown, capsys.readouterr().out):
        assert "BLEU by sentence length" in shown
        assert "source" in shown
        for name in MODELS:
            assert name in shown
        assert "report.html" in shown
    assert [path.stat().st_mtime_ns for path in weights] == before


@pytest.mark.slow
def test_results_as_json(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    run("demo", "--out", str(demo.folder), "--json", *QUICK)
    results = json.loads(capsys.readouterr().out)
    assert set(results) == set(MODELS)
    assert results["attention"]["parameters"] > results["plain"]["parameters"]
    for name in ("attention", "transformer"):
        assert results[name]["test"]["alignment_error_rate"]["name"] == "AER"


def test_a_setting_that_one_model_lacks_is_refused_before_any_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["demo", "--out", str(tmp_path / "runs"), "--set", "model.hidden=16"])
    assert stopped.value.code == 2
    assert "hidden" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
