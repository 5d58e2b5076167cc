"""What a resumed training may change, and what it must keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import SettingsError
from regard.runs.run import Run, open_run, open_store
from regard.settings.recipe import toml_value
from regard.tasks import TASKS, parse_recipe, read_recipe, task_of

# Of each task: the settings that are kept, with the value of the run and another one.
KEPT: dict[str, dict[str, tuple[Any, Any]]] = {
    "translate": {
        "training.seed": (1, 2),
        "training.start_from": (None, "runs/other"),
        "training.adapter_rank": (0, 4),
        "training.optimizer": ("adam", "muon"),
        "training.subword_sampling": (0.0, 0.2),
        "training.select": ("bleu", "loss"),
    },
    "language-model": {
        "training.seed": (1, 2),
        "training.start_from": ("runs/other", None),
        "training.freeze": (("norms",), ("backbone",)),
        "training.adapter_rank": (0, 4),
        "training.batch_size": (12, 8),
    },
    "classify-text": {
        "training.seed": (0, 1),
        "training.tokens": (1024, 512),
        "training.start_from": (None, "runs/other"),
        "training.freeze": (("norms",), ("backbone",)),
        "training.freeze_layers": (0, 1),
        "training.adapter_rank": (0, 4),
        "training.layer_decay": (1.0, 0.9),
        "training.weight_decay": (0.01, 0.0),
    },
    "forecast": {"training.seed": (1, 2), "training.batch_size": (32, 8)},
    "classify-nodes": {
        "training.seed": (1, 2),
        "training.batch_nodes": (None, 8),
        "training.neighbours": (10, 5),
        "training.select": ("both", "loss"),
    },
}
CASES = [
    pytest.param(task, key, was, wanted, id=f"{task} {key}")
    for task, settings in KEPT.items()
    for key, (was, wanted) in settings.items()
]


def recipe_of(task: str, **settings: Any) -> Any:
    given = [f"{key}={toml_value(value)}" for key, value in settings.items() if value is not None]
    return parse_recipe(f'task = "{task}"', overrides=given, origin="test")


def test_the_table_is_complete() -> None:
    assert {name: set(task_of(name).schema.kept_on_resume) for name in TASKS} == {
        name: set(settings) for name, settings in KEPT.items()
    }


@pytest.mark.parametrize(("task", "key", "was", "wanted"), CASES)
def test_what_decides_order_or_model_is_kept(
    tmp_path: Path, task: str, key: str, was: Any, wanted: Any
) -> None:
    before = recipe_of(task, **{key: was})
    open_run(tmp_path / "run", before, resume=False)
    with pytest.raises(SettingsError) as refused:
        open_run(tmp_path / "run", recipe_of(task, **{key: wanted}), resume=True)
    message = str(refused.value)
    assert f"The run at {tmp_path / 'run'} has {key} = {was!r}, not {wanted!r}." in message
    shown = was if isinstance(was, str) else toml_value(was)
    how = f"without {key}" if was is None else f"with --set {key}={shown}"
    assert f"Resume it {how}, or train into another folder." in message
    run = open_run(tmp_path / "run", before, resume=True)  # is as it was
    assert run.recipe(type(before)) == before


@pytest.mark.parametrize("task", TASKS)
def test_limits_may_change(tmp_path: Path, task: str) -> None:
    steps = "training.epochs" if task == "classify-text" else "training.steps"
    open_run(tmp_path / "run", recipe_of(task), resume=False)
    longer = recipe_of(task, **{steps: 7, "training.learning_rate": 0.125})
    open_run(tmp_path / "run", longer, resume=True)
    assert Run.open(tmp_path / "run").recipe(type(longer)) == longer


def test_another_model_or_other_data_is_another_run(tmp_path: Path) -> None:
    open_run(tmp_path / "run", recipe_of("forecast"), resume=False)
    for part, change in {"model": {"model.hidden": 3}, "data": {"data.window": 3}}.items():
        with pytest.raises(SettingsError, match=f"The settings under '{part}' differ"):
            open_run(tmp_path / "run", recipe_of("forecast", **change), resume=True)


# Of each task, the settings that name files or folders.
PATHS = {
    "translate": ("data.train", "data.valid", "data.test", "training.start_from"),
    "language-model": ("data.text", "data.valid", "training.start_from"),
    "classify-text": ("data.train", "data.valid", "data.test", "training.start_from"),
    "forecast": ("data.file",),
    "classify-nodes": ("data.edges", "data.features", "data.labels"),
}


@pytest.mark.parametrize("task", TASKS)
def test_files_are_found_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home / "given", elsewhere):
        folder.mkdir(parents=True)
    monkeypatch.chdir(home)
    given = recipe_of(task, **dict.fromkeys(PATHS[task], "given"))
    open_store(open_run(Path("runs/mine"), given, resume=False), keep=1, fingerprint="1")

    monkeypatch.chdir(elsewhere)
    run = Run.open(home / "runs" / "mine")
    found = run.recipe(type(given))
    for key in PATHS[task]:
        assert setting_of(found, key) in (str(home / "given"), (str(home / "given"),))
    open_run(run.folder, found, resume=True)
    assert read_recipe(run.folder / "recipe.toml") == given  # as the user wrote it

    monkeypatch.chdir(tmp_path)
    home.rename(tmp_path / "moved")  # with its data: the way from the run to it is the same
    moved = Run.open(Path("moved/runs/mine")).recipe(type(given))
    assert setting_of(moved, PATHS[task][0]) in (
        str(tmp_path / "moved" / "given"),
        (str(tmp_path / "moved" / "given"),),
    )


def setting_of(recipe: Any, key: str) -> Any:
    for name in key.split("."):
        recipe = getattr(recipe, name)
    return recipe


def test_data_that_lies_elsewhere_now_is_looked_for_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("home", "elsewhere"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "home")
    given = recipe_of("translate", **{"data.train": "pairs.tsv"})
    open_store(open_run(Path("mine"), given, resume=False), keep=1, fingerprint="1")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert Run.open(tmp_path / "home" / "mine").recipe(type(given)) == given
