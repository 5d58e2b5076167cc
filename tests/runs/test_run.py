from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import version
from pathlib import Path

import pytest

from regard.base.errors import RunError
from regard.runs.evidence import FORMAT
from regard.runs.run import Run, quoted
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


def test_a_run_records_its_format(tmp_path: Path) -> None:
    Run.create(tmp_path, RECIPE)
    recorded = json.loads((tmp_path / "evidence.json").read_text())
    assert recorded["format"] == FORMAT
    assert recorded["versions"]["regard"] == version("regard")


def test_a_run_of_a_later_format_is_refused(tmp_path: Path) -> None:
    Run.create(tmp_path, RECIPE)
    evidence = {"format": FORMAT + 1, "versions": {"regard": "9.1.0"}}
    (tmp_path / "evidence.json").write_text(json.dumps(evidence))
    wanted = (
        f"{tmp_path} was written by Regard 9.1.0 in format {FORMAT + 1}; Regard "
        f"{version('regard')} reads formats up to {FORMAT}. Install a newer version, "
        "from its clone or its wheel."
    )
    with pytest.raises(RunError) as error:
        Run.open(tmp_path)
    assert str(error.value) == wanted


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ("[]", "is not the evidence of a run. Restore it, or remove it."),
        ('{"format": "1"}', "the format is '1', not a number from 1."),
        ('{"format": 0}', "the format is 0, not a number from 1."),
        ('{"format": true}', "the format is True, not a number from 1."),
        ("{", "is cut short or is not a run's JSON file"),
    ],
)
def test_damaged_evidence_is_named(tmp_path: Path, evidence: str, message: str) -> None:
    Run.create(tmp_path, RECIPE)
    (tmp_path / "evidence.json").write_text(evidence)
    with pytest.raises(RunError, match=re.escape(message)):
        Run.open(tmp_path)


def test_a_run_without_evidence_can_be_opened(tmp_path: Path) -> None:
    Run.create(tmp_path, RECIPE)
    (tmp_path / "evidence.json").unlink()
    assert Run.open(tmp_path).task == "translate"


@pytest.mark.parametrize(
    ("word", "typed"),
    [
        ("runs/mine", "runs/mine"),
        ("my runs/mine", '"my runs/mine"'),
        ("I don't know.", '"I don\'t know."'),
        ('He said "no".', "'He said \"no\".'"),
        ("It costs $5 ...", "'It costs $5 ...'"),
    ],
)
def test_commands_to_copy_are_read_by_a_shell(word: str, typed: str) -> None:
    assert quoted(word) == typed
    assert shlex.split(typed) == [word]
