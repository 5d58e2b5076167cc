"""Every version opens the runs of all earlier ones, goes on with them, and gives their outputs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.upgrades.kept_runs import HERE, KEPT, rounded

import regard
from regard.runs.evidence import FORMAT
from regard.runs.run import Run
from regard.tasks import TASKS
from regard.training.checkpoint import read_state

RUNS = sorted(path.parent for path in HERE.glob("format-*/*/recipe.toml"))
MOST_BYTES = 64_000
# What is looked at where it is not a sentence.
OPTIONS: dict[str, dict[str, Any]] = {
    "forecaster": {},
    "node-classifier": {"node": "3", "picture": "node"},
}


def name_of(run: Path) -> str:
    return f"{run.parent.name} {run.name}"


def nearly(value: Any) -> Any:
    """Return what equals a value within what other processors and libraries may change."""
    if isinstance(value, dict):
        return {name: nearly(one) for name, one in value.items()}
    if isinstance(value, list):
        return [nearly(one) for one in value]
    return pytest.approx(value, rel=1e-3, abs=1e-4) if isinstance(value, float) else value


def test_there_is_a_run_of_every_task_in_this_format() -> None:
    folders = [run for run in RUNS if run.parent.name == f"format-{FORMAT}"]
    assert {Run.open(run).task for run in folders} == set(TASKS)
    assert {run.name for run in folders} == set(KEPT)


@pytest.mark.parametrize("run", RUNS, ids=name_of)
def test_it_is_opened_and_gives_its_outputs(run: Path) -> None:
    outputs = json.loads(run.with_name(f"{run.name}.json").read_text(encoding="utf-8"))
    assert rounded(KEPT[run.name].ask(regard.load(run))) == nearly(outputs)


@pytest.mark.parametrize("run", RUNS, ids=name_of)
def test_it_is_looked_at(run: Path) -> None:
    if run.name == "recurrent-language-model":  # has no attention
        return
    options: dict[str, Any] = {"text": "the cat sees one axe"}
    if run.name in OPTIONS:
        options = OPTIONS[run.name]
    assert regard.look(run, **options).record


@pytest.mark.parametrize("run", RUNS, ids=name_of)
def test_its_training_goes_on(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / run.name
    shutil.copytree(run, copy)
    length = "training.epochs" if run.name == "text-classifier" else "training.steps"
    more = {length: KEPT[run.name].settings[length] + 1}
    regard.train(resume=copy, data=KEPT[run.name].data, set=more, progress=False)
    before, after = (
        max(read_state(path.parent)["progress"]["step"] for path in folder.rglob("state.json"))
        for folder in (run, copy)
    )
    assert after > before


@pytest.mark.parametrize("run", RUNS, ids=name_of)
def test_it_is_small_and_of_its_format(run: Path) -> None:
    assert sum(path.stat().st_size for path in run.rglob("*") if path.is_file()) < MOST_BYTES
    recorded = json.loads((run / "evidence.json").read_text(encoding="utf-8"))
    assert f"format-{recorded['format']}" == run.parent.name
