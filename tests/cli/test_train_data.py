"""The data of a training: every way to give it, for every task, and what happens without."""

from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.base.errors import SettingsError
from regard.training.checkpoint import read_state

TINY = {
    "seq2seq": ["tokenizer.kind=word", "model.hidden=8", "model.embedding=8", "decoding.beam=1",
                "training.steps=2", "training.validate_sentences=2"],
    "gpt-nano": ["model.layers=1", "model.model_dim=16", "model.context=16", "training.steps=2",
                 "decoding.max_tokens=2"],
    "text-classifier": ["model.layers=1", "model.model_dim=16", "model.context=16",
                        "training.epochs=1"],
    "forecast": ["data.window=6", "model.hidden=4", "training.steps=2"],
    "gat-cora": ["training.steps=2", "training.seeds=1", "data.train_per_class=3"],
}  # fmt: skip
WORDS = ("ba", "ko", "mi", "ru", "ze", "do")
PAIRS = [(f"{a} {b} {c}", f"{c} {b} {a}".upper()) for a in WORDS for b in WORDS for c in WORDS[:2]]


def options(recipe: str) -> list[str]:
    return [part for setting in TINY[recipe] for part in ("--set", setting)]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with the same pairs in many forms, and with the data of other tasks."""
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [json.dumps({"source": source, "target": target}) for source, target in PAIRS]
    contents = {
        "pairs.tsv": "\n".join("\t".join(pair) for pair in PAIRS),
        "pairs.csv": "source,target\n" + "\n".join(",".join(pair) for pair in PAIRS),
        "pairs.jsonl": "\n".join(rows),
        "train.en": "\n".join(source for source, _ in PAIRS),
        "train.de": "\n".join(target for _, target in PAIRS),
        "book.txt": "the cat sat on a mat.\n" * 40,
        "book.jsonl": "\n".join([json.dumps({"text": "the cat sat on a mat."})] * 40),
        "labels.tsv": "\n".join(f"the {word} sat\tanimal\na {word} fell\ttool" for word in WORDS),
        "labels.csv": "no,words,kind\n"
        + "\n".join(f"1,the {word} sat,animal\n2,a {word} fell,tool" for word in WORDS),
        "prices.csv": "day,close\n" + "\n".join(f"{n},{n % 7 + n / 9}" for n in range(60)),
        "prices.jsonl": "\n".join(json.dumps({"close": n % 7 + n / 9}) for n in range(60)),
    }
    for name, content in contents.items():
        (folder / name).write_text(content + "\n", encoding="utf-8")
    (folder / "pairs.tsv.gz").write_bytes(gzip.compress((folder / "pairs.tsv").read_bytes()))
    random, labels = np.random.default_rng(0), np.arange(30) % 3
    graph = {"x": np.eye(3, dtype=np.float32)[labels], "y": labels}
    np.savez(folder / "graph.npz", edges=random.integers(0, 30, (2, 60)), **graph)
    return folder


# What follows `regard train RECIPE`, and the files of the run's recipe.
WAYS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a TSV": ("seq2seq", "--data pairs.tsv", {"train": ["pairs.tsv"]}),
    "a TSV with gzip": ("seq2seq", "--data pairs.tsv.gz", {"train": ["pairs.tsv.gz"]}),
    "a JSONL": ("seq2seq", "--data pairs.jsonl", {"train": ["pairs.jsonl"]}),
    "a CSV by column": ("seq2seq", "--data pairs.csv --columns source,target", {}),
    "two files": ("seq2seq", "--data train.en train.de", {"train": ["train.en", "train.de"]}),
    "--data twice": ("seq2seq", "--data train.en --data train.de", {}),
    "by their languages": (
        "seq2seq",
        "--data train.en train.de --pair de-en",
        {"pair": "de-en", "train": ["train.en", "train.de"]},
    ),
    "a folder": ("seq2seq", "--data . --pair en-de", {"train": ["train.en", "train.de"]}),
    "all parts": (
        "seq2seq",
        "--data pairs.tsv --valid train.en train.de --test pairs.csv",
        {"valid": ["train.en", "train.de"], "test": ["pairs.csv"]},
    ),
    "as a setting": ("seq2seq", "--set data.train=pairs.tsv", {"train": ["pairs.tsv"]}),
    "plain text": ("gpt-nano", "--data book.txt", {"text": ["book.txt"]}),
    "records of text": ("gpt-nano", "--data book.jsonl --valid book.txt", {"valid": ["book.txt"]}),
    "labels": ("text-classifier", "--data labels.tsv", {"train": ["labels.tsv"]}),
    "labels by column": ("text-classifier", "--data labels.csv --columns words,kind", {}),
    "a series": ("forecast", "--data prices.csv --columns close", {"file": "prices.csv"}),
    "records of numbers": ("forecast", "--data prices.jsonl --columns close", {}),
    "a graph": ("gat-cora", "--data graph.npz", {"graph": "graph.npz"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in(
    run: Any, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(files)
    recipe, given, expected = WAYS[way]
    out = tmp_path / "run"
    answer = run("train", recipe, *given.split(), *options(recipe), "--minutes", "5", "--out", out)
    assert answer.code == 0, answer.err
    table = tomllib.loads((out / "recipe.toml").read_text(encoding="utf-8"))
    assert {key: table["data"][key] for key in expected} == expected
    assert table["training"]["minutes"] == 5
    if recipe == "seq2seq" and "--valid" not in given:
        note = "Held out of 72 pairs by seed 1: 7 for validation and 7 to test on."
        assert note in answer.err.splitlines()
        assert (out / "test.json").is_file()


# A recipe, what follows it, and what the message says.
WITHOUT: dict[str, tuple[str, str, str]] = {
    "pairs": ("transformer-tiny", "", "There are no sentence pairs to learn from: give the data"),
    "text": ("gpt-nano", "", "There is no text to learn from: give the data with --data book.txt"),
    "labels": ("text-classifier", "", "There are no labelled texts to learn from: give the data"),
    "a series": ("forecast", "", "or ask for the Fibonacci numbers with --built-in."),
    "a graph": ("gat-cora", "", "There is no graph to learn from: give the data with --data gra"),
    "both": ("seq2seq", "--data a.tsv --built-in", "--data and --built-in exclude each other"),
    "none built in": (
        "text-classifier",
        "--built-in",
        "A recipe of the task 'classify-text' takes no --built-in.",
    ),
    "no pair": ("forecast", "--data a.csv --pair en-de", "the task 'forecast' takes no --pair"),
    "no train": ("seq2seq", "--valid a.tsv", 'has no part "train"'),
    "two series": ("forecast", "--data a.csv b.csv", "A series lies in one file; 2 were named."),
    "parts": ("forecast", "--data a.csv --test b.csv", "A series is one file or list of numbers"),
    "graph parts": ("gat-cora", "--data a.npz --test b.npz", "A graph is given as a whole"),
    "tables": ("gat-cora", "--data a.csv b.csv", "three tables whose names tell edges, features"),
    "columns": ("forecast", "--data a.csv --columns a,b", "One column is wanted, not 2: a, b."),
    "a test of text": ("gpt-nano", "--data a.txt --test b.txt", "Unknown part of the data 'test'"),
}


@pytest.mark.parametrize("case", WITHOUT)
def test_data_that_is_missing_or_too_much(refuse: Any, tmp_path: Path, case: str) -> None:
    recipe, given, message = WITHOUT[case]
    assert message in refuse("train", recipe, *given.split(), "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_forgotten_pairs_name_both_ways(refuse: Any, tmp_path: Path) -> None:
    said = refuse("train", "transformer-tiny", "--out", tmp_path / "x")
    assert "--data pairs.tsv" in said
    assert "--built-in" in said


GRAMMAR = ["data.grammar.size=30", "data.grammar.words=small", "data.grammar.max_words=6",
           "data.grammar.valid_size=4", "data.grammar.test_size=4"]  # fmt: skip


def test_the_built_in_data_must_be_asked_for(run: Any, tmp_path: Path) -> None:
    small = [part for setting in GRAMMAR for part in ("--set", setting)]
    for name, asked in {"option": ["--built-in", *small], "keys": small}.items():
        answer = run("train", "seq2seq", *asked, *options("seq2seq"), "--out", tmp_path / name)
        assert answer.code == 0, answer.err
        table = tomllib.loads((tmp_path / name / "recipe.toml").read_text(encoding="utf-8"))
        assert table["data"]["built_in"] is True
    recipe = regard.find_recipe("seq2seq")
    settings = [*GRAMMAR, *TINY["seq2seq"]]
    regard.train(recipe, set=settings, out=tmp_path / "object", progress=False)
    with pytest.raises(SettingsError, match="no sentence pairs"):
        regard.train(recipe, set=TINY["seq2seq"], out=tmp_path / "no", progress=False)
    built_in = regard.find_recipe("demo-plain")
    assert built_in.data.built_in  # type: ignore[attr-defined]


def test_the_same_from_python(files: Path, tmp_path: Path) -> None:
    lines = [str(files / "train.en"), str(files / "train.de")]
    forms: dict[str, Any] = {
        "file": str(files / "pairs.tsv"),
        "lines": lines,
        "parts": {"train": files / "pairs.csv"},
        "memory": PAIRS,
    }
    digests = set()
    for name, data in forms.items():
        trained = regard.train(
            "seq2seq", data=data, minutes=5, set=TINY["seq2seq"], out=tmp_path / name,
            progress=False,
        )  # fmt: skip
        digests.add(read_state(tmp_path / name / "best")["data"])
        assert trained.run.table["training"]["minutes"] == 5
    assert len(digests) == 1  # the same pairs, the same held out
    swapped = regard.train(
        "seq2seq", data=str(files / "pairs.csv"), columns=["target", 1], set=TINY["seq2seq"],
        out=tmp_path / "swapped", progress=False,
    )  # fmt: skip
    assert swapped.run.table["data"]["columns"] == ["target", "1"]
    book = regard.train(
        "gpt-nano", data=str(files / "book.txt"), set=TINY["gpt-nano"], out=tmp_path / "book",
        progress=False,
    )  # fmt: skip
    assert book.run.table["data"]["text"] == [str(files / "book.txt")]


def test_bad_lines_can_be_left_out(run: Any, refuse: Any, files: Path, tmp_path: Path) -> None:
    path = files / "pairs.tsv"
    path.write_text("alone\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    given = ["train", "seq2seq", "--data", path, *options("seq2seq"), "--out", tmp_path / "run"]
    assert f"{path}, line 1: 1 column where 2 are needed." in refuse(*given)
    answer = run(*given, "--set", "data.skip_bad=true")
    assert f"1 left out: too few columns (as in {path}, line 1)." in answer.err
