from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ctranslate2")


def test_it_says_where_the_export_is_and_what_it_costs(
    run: Any, random_transformer_run: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(random_transformer_run, tmp_path / "run")
    answer = run("export", folder, "--to", "ctranslate2", "--output", tmp_path / "out")
    assert answer.lines == [f"Wrote {tmp_path / 'out'}"]
    answer = run("export", folder, "--to", "ctranslate2", "--quantization", "int8")
    assert answer.lines[0] == f"Wrote {folder / 'engines' / 'ctranslate2-int8'}"
    assert answer.lines[1].startswith("Validation: BLEU ")


def test_what_is_there_is_replaced_only_by_force(
    run: Any, refuse: Any, random_transformer_run: Path, tmp_path: Path
) -> None:
    command = ("export", random_transformer_run, "--to", "ctranslate2", "--output")
    out = tmp_path / "out"
    out.mkdir()
    run(*command, out)  # an empty folder is free
    before = (out / "model.bin").stat().st_mtime_ns
    problem = f"{out} exists already: choose another name with --output, or replace it with --force"
    assert problem in refuse(*command, out)
    assert (out / "model.bin").stat().st_mtime_ns == before
    run(*command, out, "--force")
    assert (out / "model.bin").stat().st_mtime_ns != before
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    assert "holds no earlier export" in refuse(*command, mine, "--force")
    assert (mine / "thesis.txt").read_text() == "years of work"


MISTAKES = {
    "no languages": (["--to", "argos"], "--to argos needs the languages"),
    "a shortlist for argos": (
        ["--to", "argos", "--source", "en", "--target", "de", "--shortlist"],
        "--shortlist belongs to --to ctranslate2",
    ),
    "a smaller GPT-2": (
        ["--to", "gpt2", "--quantization", "int8"],
        "--quantization belongs to --to ctranslate2, argos or onnx, not to gpt2",
    ),
    "languages for CTranslate2": (
        ["--to", "ctranslate2", "--source", "en"],
        "--source belongs to --to argos",
    ),
    "words for argos": (
        ["--to", "argos", "--source", "en", "--target", "de"],
        "one SentencePiece model for both languages",
    ),
    "nowhere to write": (
        ["--to", "ctranslate2", "--output", "/no/such/folder"],
        "there is no folder /no/such",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named(case: str, refuse: Any, random_transformer_run: Path) -> None:
    arguments, problem = MISTAKES[case]
    assert problem in refuse("export", random_transformer_run, *arguments)


def test_a_recurrent_run_cannot_be_exported(refuse: Any, toy_run: Path) -> None:
    assert "model.family = 'recurrent'" in refuse("export", toy_run, "--to", "ctranslate2")
