"""Parts of one's own: given by name, recorded in the run, never imported by themselves."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.attention.scores import SCORES
from regard.base.errors import RunError, SettingsError
from regard.cli.app import main
from regard.runs.catalogue import PARTS, require_parts
from regard.tasks import TASKS

SCORE = """
from pathlib import Path
from regard.attention.scores import SCORES, DotScore

class OwnScore(DotScore):
    formula = "e = h s"

SCORES["own"] = OwnScore
Path(__file__).with_suffix(".imported").touch()
"""
TASK = """
from torch import nn
from regard.runs.run import TrainedRun, training_run
from regard.settings.recipe import Recipe
from regard.tasks import TASKS, Task

class OwnRecipe(Recipe):
    task: str = "own"

def load(folder):
    return (folder / "own.txt").read_text()

def train(recipe, out, *, title, data, resume, display):
    with training_run(out, recipe, resume=resume) as run:
        (out / "own.txt").write_text(str(data))
    return TrainedRun(run, load(out))

TASK = Task(schema=OwnRecipe, train=train, load=load, build=nn.Identity,
            report=lambda trained, path, *, title: None, views={})
TASKS["own"] = __name__
"""


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Leave registries and modules as they were."""
    yield
    for name in ("own_score", "own_task", "own_broken"):
        sys.modules.pop(name, None)
    SCORES.pop("own", None)
    TASKS.pop("own", None)


@pytest.fixture
def score(tmp_path: Path) -> Path:
    path = tmp_path / "own_score.py"
    dot = SCORES["dot"].__name__
    path.write_text(SCORE.replace("DotScore", dot), encoding="utf-8")
    return path


def call(*arguments: Any) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(one) for one in arguments])
    return int(stop.value.code or 0)


def test_a_score_is_known_to_every_command(
    score: Path, toy_settings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    fast = [*toy_settings, "model.attention=own", "training.steps=2", "training.warmup=0"]
    sets = [word for setting in fast for word in ("--set", setting)]
    assert call("train", "seq2seq-attention", *sets, "--out", run) == 2
    assert "own" in capsys.readouterr().err
    assert call("train", "seq2seq-attention", *sets, "--out", run, "--import", score) == 0
    record = json.loads((run / PARTS).read_text())
    (row,) = record["needs"]
    assert row == {"module": "own_score", "file": "own_score.py", "parts": ["score 'own'"]}
    assert str(tmp_path) not in (run / PARTS).read_text()
    assert call("translate", run, "badal kofen", "--import", score) == 0
    capsys.readouterr()

    sys.modules.pop("own_score")
    SCORES.pop("own")
    score.with_suffix(".imported").unlink()
    (run / "own_score.py").write_bytes(score.read_bytes())
    assert call("translate", run, "badal kofen") == 2
    said = capsys.readouterr().err
    assert "needs the module 'own_score' for score 'own'" in said
    assert "--import own_score.py" in said
    assert not list(tmp_path.rglob("*.imported"))  # not even from the folder of the run
    with pytest.raises(RunError, match=r"regard\.use\('own_score\.py'\)"):
        regard.load(run)
    regard.use(score)
    assert regard.load(run).translate("badal kofen").text is not None


def test_a_task_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own_task.py"
    path.write_text(TASK, encoding="utf-8")
    module = regard.use(path)
    assert regard.use(path) is module
    regard.train(module.OwnRecipe(), data=[7], out=tmp_path / "run", progress=False)
    assert regard.load(tmp_path / "run") == "[7]"
    sys.modules.pop("own_task")
    TASKS.pop("own")
    with pytest.raises(RunError, match=r"needs the module 'own_task' for task 'own'"):
        regard.load(tmp_path / "run")


def test_runs_of_our_own_parts_need_nothing(toy_run: Path) -> None:
    assert not (toy_run / PARTS).exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.py", "there is no such file"),
        ("no_such_module_here", "No module named 'no_such_module_here'. Name a Python file"),
        ("json.py", "there is another module named 'json'"),
        ("own_broken.py", "ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_be_imported_is_said(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("json.py").touch()
    Path("own_broken.py").write_text("1 / 0")
    with pytest.raises(SettingsError) as error:
        regard.use(name)
    assert message in str(error.value)


def test_a_damaged_record_is_said(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"needs": [{}]}', '{"needs": 3}'):
        (tmp_path / PARTS).write_text(text)
        with pytest.raises(RunError, match=r"parts\.json is damaged"):
            require_parts(tmp_path)
