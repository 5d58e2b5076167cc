from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import RunError
from regard.runs.run import Run
from regard.tasks.translation.settings import TranslationRecipe

RECIPE = TranslationRecipe(title="first")


def test_a_new_run_tells_how_it_was_made(tmp_path: Path) -> None:
    for folder in (tmp_path / "new" / "deep", tmp_path / "empty"):
        if folder.name == "empty":
            folder.mkdir()
        run = Run.create(folder, RECIPE)
        assert run.recipe(TranslationRecipe) == RECIPE
        assert Run.open(folder).task == "translate"
        assert not run.has_tokenizers()


def a_run(folder: Path) -> None:
    Run.create(folder, RECIPE)


def a_file(folder: Path) -> None:
    folder.write_text("mine", encoding="utf-8")


def something_else(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine", encoding="utf-8")


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (
            a_run,
            "already holds a run: continue it with `regard train --resume .*/out`, or",
        ),
        (a_file, "is a file; choose another folder with --out"),
        (something_else, "is not empty; choose another folder with --out"),
    ],
)
def test_what_is_there_is_never_overwritten(tmp_path: Path, prepare, message: str) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "out"
    prepare(folder)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match=message):
        Run.create(folder, TranslationRecipe(title="second"))
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert before == after


def test_a_finished_run_is_complete_in_itself(toy_run: Path) -> None:
    names = {path.name for path in toy_run.iterdir()}
    assert {"recipe.toml", "metrics.jsonl", "checkpoints", "best", "test.json"} <= names
    assert Run.open(toy_run).has_tokenizers()
    assert not [path for path in toy_run.rglob("*") if path.suffix in (".pt", ".pkl", ".bin")]
