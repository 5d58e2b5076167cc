from __future__ import annotations

from pathlib import Path

import pytest
from tests.exchange.test_marian import marian_folder

from regard.cli.app import main


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return int(stop.value.code or 0)


def test_a_model_of_another_program_becomes_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marian_folder(tmp_path / "model")
    assert run("import", tmp_path / "model", "--out", tmp_path / "run") == 0
    said = capsys.readouterr().err
    assert "marian: model.npz" in said
    assert f"try: regard translate {tmp_path / 'run'}" in said
    assert run("translate", tmp_path / "run", "the cat", "--max-length", 4) == 0
    capsys.readouterr()
    # a second time: the run is there
    assert run("import", tmp_path / "model", "--out", tmp_path / "run") == 2
    assert "already holds a run" in capsys.readouterr().err


def test_several_files_of_weights_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    marian_folder(folder)
    (folder / "other.npz").write_bytes((folder / "model.npz").read_bytes())
    assert run("import", folder, "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert "several files of weights: model.npz, other.npz. Name one with --weights" in said
    assert not (tmp_path / "run").exists()
    assert run("import", folder, "--weights", "other.npz", "--out", tmp_path / "run") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--languages", "en"], "is not of the form source-target"),
        (["--data", "graph.npz"], "--data belongs to a node classifier"),
        (["--weights", "none.npz"], "There is no file none.npz"),
    ],
)
def test_wrong_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    marian_folder(tmp_path / "model")
    assert run("import", tmp_path / "model", "--out", tmp_path / "run", *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_nothing_to_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert run("import", tmp_path / "empty", "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert "holds no model that can be imported. Known are: Hugging Face" in said
    assert run("import", tmp_path / "nowhere", "--out", tmp_path / "run") == 2
    assert "There is no file or folder" in capsys.readouterr().err
