"""The commands on a run that classifies nodes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import SettingsError
from regard.cli.app import main
from regard.tasks.node_classification import report as node_report
from regard.tasks.node_classification.model import load


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(0)
    labels = np.arange(30) % 3
    path = tmp_path_factory.mktemp("graph") / "small.npz"
    np.savez(
        path,
        x=np.eye(3, dtype=np.float32)[labels] + random.random((30, 3), dtype=np.float32),
        y=labels,
        edges=random.integers(0, 30, (2, 60)),
    )
    return path


@pytest.fixture(scope="module")
def run(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "graph"
    overrides = ["training.steps=5", "training.seeds=2", "data.train_per_class=3"]
    settings = [part for each in overrides for part in ("--set", each)]
    with pytest.raises(SystemExit) as ended:
        main(["train", "gat-cora", "--set", f"data.graph={graph}", *settings, "--out", str(folder)])
    assert ended.value.code == 0
    return folder


def regard(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_training_prints_the_accuracy_with_its_spread(
    run: Path, graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A finished run is resumed at once, and says what it found.
    settings = ["training.steps=5", "training.seeds=2", "data.train_per_class=3"]
    pairs = [part for each in settings for part in ("--set", each)]
    code, out, err = regard(
        capsys, "train", "gat-cora", "--set", f"data.graph={graph}", *pairs, "--out", str(run),
        "--resume", "--json",
    )  # fmt: skip
    assert code == 0
    assert "Test accuracy:" in err
    assert "± " in err
    assert json.loads(out)["accuracy_mean"] > 0


def test_the_run_has_a_report(run: Path) -> None:
    page = (run / "report.html").read_text(encoding="utf-8")
    for part in ("over 2 seeds", "Which label is taken for which", "The nodes by", "Recipe"):
        assert part in page


def test_a_report_does_without_points_that_cannot_be_drawn(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(run)
    assert len(list(node_report._points(loaded))) == 2

    def refuse(*_: object, **__: object) -> str:
        raise SettingsError("no scikit-learn")

    monkeypatch.setattr(node_report, "embeddings_svg", refuse)
    assert list(node_report._points(loaded)) == []
    monkeypatch.setattr(node_report, "MOST_POINTS", 3)
    assert list(node_report._points(loaded)) == []


def test_a_node_is_drawn(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "n.svg"
    code, out, _ = regard(capsys, "look", str(run), "--node", "7", "--out", str(picture))
    assert code == 0
    assert out.startswith("node 7: class ")
    assert f"Wrote {picture}" in out


def test_attention_comes_as_tables(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every, own = tmp_path / "all.tsv", tmp_path / "own.tsv"
    assert regard(capsys, "look", str(run), "--out", str(every))[0] == 0
    _, out, _ = regard(capsys, "look", str(run), "--node", "7", "--out", str(own), "--json")
    assert json.loads(out)["node"] == "7"
    wanted = [line for line in every.read_text().splitlines() if line.split("\t")[1] == "7"]
    assert sorted(own.read_text().splitlines()[1:]) == sorted(wanted)


def test_all_nodes_are_drawn(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "e.svg"
    code, _, _ = regard(capsys, "look", str(run), "--embeddings", "pca", "--out", str(picture))
    assert code == 0
    assert picture.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--node", "99"], "There is no node '99'; the nodes are 0 to 29"),
        ([], "Name a node with --node"),
        (["--embeddings", "pca"], "--embeddings takes pca or t-sne, and a picture with --out"),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str], message: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = regard(capsys, "look", str(run), *arguments)
    assert code == 2
    assert message in err


def test_layers_are_summarised(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = regard(capsys, "summary", "gat-cora", "--json")
    assert json.loads(out)["parameters"]["total"] == 92_373 + 9
    _, out, _ = regard(capsys, "summary", str(run), "--json")
    assert json.loads(out)["layers"]
