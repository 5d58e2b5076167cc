from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SMALL = [
    "model.layers=1", "model.heads=2", "model.model_dim=16", "model.context=16",
    "training.steps=20", "training.validate_every=20", "decoding.max_tokens=0",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, labelled texts and a language model of the text."""
    from regard.cli.app import main

    found = tmp_path_factory.mktemp("finetune")
    (found / "book.txt").write_text("the cat sat\na saw fell\n" * 40, encoding="utf-8")
    rows = ["the cat sat\tanimal\n", "a saw fell\ttool\n"] * 15 + ["odd one\tlonely\n"]
    (found / "labels.tsv").write_text("".join(rows), encoding="utf-8")
    options = [part for each in (f"data.text={found / 'book.txt'}", *SMALL)
               for part in ("--set", each)]  # fmt: skip
    try:
        main(["train", "gpt-nano", *options, "--out", str(found / "lm")])
    except SystemExit as stop:
        assert not stop.code
    return found


def test_finetune_and_classify(run: Any, folder: Path, tmp_path: Path) -> None:
    answer = run(
        "finetune", folder / "lm", "--task", "classify", "--data", folder / "labels.tsv",
        "--out", tmp_path / "run", "--set", "training.epochs=8",
        "--set", "training.learning_rate=0.01", "--json",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert set(answer.json) == {"pre-trained", "from scratch"}
    assert "from scratch" in answer.err
    assert "true / predicted" in answer.err
    assert "The class 'lonely' has only one example" in answer.err
    (tmp_path / "new.txt").write_text("the cat sat\na saw fell\n", encoding="utf-8")
    found = run("classify", tmp_path / "run", "--input", tmp_path / "new.txt")
    assert [line.split("\t")[2] for line in found.lines] == ["the cat sat", "a saw fell"]
    one = run("classify", tmp_path / "run", "the cat sat", "--json").json
    assert set(one[0]["probabilities"]) == {"animal", "lonely", "tool"}
    piped = run("classify", tmp_path / "run", stdin=b"a saw fell\n")
    assert piped.lines == found.lines[1:]
    assert found.err == ""
    odd = run("classify", tmp_path / "run", "the CAT sat")
    assert odd.err == "[3 unknown characters: C, A, T]\n"
    seen = run("look", tmp_path / "run", "the cat sat")  # not the confusion matrix
    assert [line.split()[0] for line in seen.lines[2:5]] == ["the", "cat", "sat"]
    assert "would fall without the word" in seen.lines[-1]
    assert run("summary", tmp_path / "run", "--json").json["parameters"]["total"] > 0


def test_going_on_with_other_text(run: Any, folder: Path, tmp_path: Path) -> None:
    answer = run(
        "finetune", folder / "lm", "--task", "continue", "--data", folder / "book.txt",
        "--out", tmp_path / "run", "--json",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "bits_per_character" in answer.json


def test_a_classifier_from_scratch_by_its_recipe(run: Any, folder: Path, tmp_path: Path) -> None:
    options = [
        f"data.train={folder / 'labels.tsv'}", "tokenizer.kind=character", "model.layers=1",
        "model.model_dim=16", "training.epochs=1", "data.hold_out_test=0",
    ]  # fmt: skip
    given = [part for each in options for part in ("--set", each)]
    answer = run("train", "text-classifier", *given, "--out", tmp_path / "run", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["labels"] == ["animal", "lonely", "tool"]
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    for part in ("validation texts", "macro-F1", "Which label is taken for which", "lonely"):
        assert part in page
    assert run("summary", "text-classifier", "--json").code == 0


def test_mistakes(refuse: Any, folder: Path, tmp_path: Path) -> None:
    given = ["finetune", folder / "lm", "--data", folder / "labels.tsv", "--out", tmp_path / "new"]
    assert "Did you mean 'classify'" in refuse(*given, "--task", "clasify")
    assert "--test is for" in refuse(*given, "--task", "continue", "--test", "x")
    (tmp_path / "new-scratch").mkdir()
    (tmp_path / "new-scratch" / "file").touch()
    assert "new-scratch is not empty" in refuse(*given)
    assert "either TEXT or --input" in refuse("classify", folder / "lm", "x", "--input", "y")
    assert "task 'classify-text'" in refuse("classify", folder / "lm", "x")
