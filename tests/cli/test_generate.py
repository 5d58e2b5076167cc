from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

TEXT = "the cat sat on a mat.\nthe mat sat on a cat.\n" * 30
SMALL = [
    "model.layers=1", "model.heads=2", "model.model_dim=16", "model.context=16",
    "training.steps=40", "training.warmup=5", "training.learning_rate=0.02",
    "training.validate_every=40", "decoding.max_tokens=10",
]  # fmt: skip


def options(text: Path) -> list[str]:
    return [part for each in (f"data.text={text}", *SMALL) for part in ("--set", each)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from regard.cli.app import main

    folder = tmp_path_factory.mktemp("cli")
    (folder / "book.txt").write_text(TEXT, encoding="utf-8")
    try:
        main(["train", "gpt-nano", *options(folder / "book.txt"), "--out", str(folder / "run")])
    except SystemExit as stop:
        assert not stop.code
    return folder / "run"


def test_training_shows_what_it_found(run: Any, tmp_path: Path) -> None:
    text = tmp_path / "book.txt"
    text.write_text(TEXT, encoding="utf-8")
    answer = run("train", "gpt-nano", *options(text), "--out", tmp_path / "run", "--json")
    assert answer.code == 0, answer.err
    assert set(answer.json) == {
        "run", "samples", "report", "loss", "perplexity", "bits_per_character", "bits_per_byte"
    }  # fmt: skip
    assert "bits a character" in answer.err


def test_the_run_has_a_report(trained: Path) -> None:
    page = (trained / "report.html").read_text(encoding="utf-8")
    for part in ("perplexity", "What it writes", "After 40 updates", "layer 0, head 1", "Recipe"):
        assert part in page


def test_a_report_does_without_heads_that_are_not_there(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.base.errors import RegardError
    from regard.runs.run import Run
    from regard.tasks.language_modelling.model import (
        LoadedLanguageModel,
        TrainedLanguageModel,
        load,
    )
    from regard.tasks.language_modelling.report import _looks

    found = TrainedLanguageModel(Run.open(trained), load(trained), {})
    assert len(list(_looks(found, "the cat"))) == 2

    def refuse(*_: object) -> None:
        raise RegardError("This model has no attention heads; only a Transformer has them.")

    monkeypatch.setattr(LoadedLanguageModel, "heads", refuse)
    assert list(_looks(found, "the cat")) == []


def test_a_mistake_leaves_no_folder(refuse: Any, tmp_path: Path) -> None:
    assert "give the data with --data book.txt" in refuse(
        "train", "gpt-nano", "--out", tmp_path / "run"
    )
    assert not (tmp_path / "run").exists()


def test_text_is_continued(run: Any, trained: Path) -> None:
    answer = run("generate", trained, "the cat", "--max-tokens", 8, "--seed", 3)
    assert answer.code == 0, answer.err
    assert answer.out.startswith("the cat")
    assert len(answer.out.rstrip("\n")) <= len("the cat") + 8
    again = run("generate", trained, "the cat", "--max-tokens", 8, "--seed", 3, "--no-cache")
    assert again.out == answer.out


def test_no_prompt_and_no_symbols(run: Any, trained: Path) -> None:
    assert len(run("generate", trained, "--max-tokens", 5, "--json").json[0]["text"]) == 5
    assert run("generate", trained, "the", "--max-tokens", 0).out == "the\n"


def test_many_samples(run: Any, trained: Path) -> None:
    answer = run("generate", trained, "the", "--samples", 2, "--max-tokens", 4, "--stop", "\\n")
    assert [line for line in answer.lines if line.startswith("---")] == ["--- 1 ---", "--- 2 ---"]


def test_a_long_prompt_slides_and_says_so(run: Any, trained: Path) -> None:
    answer = run("generate", trained, "the cat sat on a mat.", "--greedy", "--max-tokens", 4)
    assert "reads 16 at once" in answer.err
    assert answer.out.startswith("the cat sat on a mat.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--top-p", "2"], "top_p"),
        (["--greedy", "--temperature", "0.5"], "either --greedy or --temperature"),
    ],
)
def test_options_that_do_not_fit(
    refuse: Any, trained: Path, arguments: list[str], message: str
) -> None:
    assert message in refuse("generate", trained, "the", *arguments)


def test_a_run_of_another_task(refuse: Any, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text('task = "forecast"', encoding="utf-8")
    assert "a recipe of the task 'language-model'" in refuse("generate", tmp_path, "the")


def test_summary_of_recipe_and_run(run: Any, trained: Path) -> None:
    small = run("summary", "gpt-nano", "--json").json["parameters"]["total"]
    assert small == 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128 + (100 + 64) * 128
    assert run("summary", trained, "--json").json["parameters"]["total"] < small


def test_what_the_model_looks_at(run: Any, refuse: Any, trained: Path, tmp_path: Path) -> None:
    answer = run("look", trained, "the cat", "--json")
    assert answer.json["pieces"] == ["t", "h", "e", "␣", "c", "a", "t"]
    assert run("look", trained, "the cat", "--out", tmp_path / "heads.html").code == 0
    assert (tmp_path / "heads.html").is_file()
    assert "--out" in refuse("look", trained, "the cat")
    assert "--part encoder is for translators" in refuse(
        "look", trained, "the cat", "--part", "encoder"
    )
    assert run("look", trained, "the cat", "--word", "c").out.startswith("layer 0, mean of 2 heads")
