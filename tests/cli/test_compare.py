"""Comparisons as a user asks for them, and a short training of the model series."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from regard.api import baseline_name
from regard.cli.app import main
from regard.studies.compare import compare
from regard.studies.model_series import ENTRIES

QUICK = [
    "training.steps=4",
    "training.validate_every=4",
    "training.validate_sentences=2",
    "training.checkpoint_every=2",
    "batches.tokens=300",
    "decoding.beam=1",
    "decoding.max_extra=3",
]
GRAMMAR = [f"data.grammar.{each}" for each in ("size=60", "valid_size=4", "test_size=8")]
SERIES = [part for setting in (*QUICK, *GRAMMAR) for part in ("--set", setting)]


@pytest.fixture(scope="module", autouse=True)
def few_samples() -> Iterator[None]:
    """Resample a little: it is the way that is tested here, not the certainty."""
    with pytest.MonkeyPatch.context() as patch:
        quick = partial(compare, samples=20, rounds=1)
        patch.setattr("regard.studies.compare.compare", quick)
        patch.setattr("regard.studies.comparison_report.FIGURES", ("by-length.svg",))
        yield


@pytest.fixture(scope="module")
def two_runs(toy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same run at two places."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("first", "second"):
        shutil.copytree(toy_run, folder / name)
    return folder / "first", folder / "second"


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("series") / "runs"
    with pytest.raises(SystemExit) as stopped:
        main(["compare", "--series", "--out", str(folder), *SERIES])
    assert stopped.value.code in (0, None)
    return folder


def test_a_table_on_the_terminal_and_a_page(run: Callable, two_runs, tmp_path: Path):
    answer = run("compare", *two_runs, "--out", tmp_path / "out")
    assert answer.code == 0
    for part in ("first", "second", "BLEU", "chrF", "+0.0", "1.00x", "BLEU by words"):
        assert part in answer.out, part
    assert (tmp_path / "out" / "comparison.html").is_file()


def test_results_as_json_with_a_test_set_and_a_baseline(
    run: Callable, two_runs, toy_corpus: Path, tmp_path: Path
):
    test = (toy_corpus / "valid.src", toy_corpus / "valid.tgt")
    answer = run("compare", *two_runs, "--test", *test, "--baseline", two_runs[1], "--json",
                 "--out", tmp_path)  # fmt: skip
    assert answer.json["baseline"] == "second"
    assert answer.json["sentences"] == 40


def test_a_baseline_is_named_by_its_path_its_folder_or_its_title():
    runs = {"no attention": Path("out/plain"), "dot attention": Path("out/dot")}
    for given in ("out/dot", "./out/../out/dot", "dot", "dot attention"):
        assert baseline_name(given, runs) == "dot attention"
    assert baseline_name("other", runs) == "other"
    assert baseline_name(None, runs) is None


def test_a_baseline_that_is_not_among_the_runs_joins_them(run: Callable, two_runs, tmp_path: Path):
    answer = run("compare", two_runs[1], "--baseline", two_runs[0], "--json", "--out", tmp_path)
    assert list(answer.json["models"]) == ["first", "second"]
    assert answer.json["baseline"] == "first"


def test_mistakes_are_answered_in_a_sentence(refuse: Callable, two_runs, tmp_path: Path):
    first, second = two_runs
    assert "two runs or more, or --series" in refuse("compare", first)
    assert "two runs or more, or --series" in refuse("compare")
    assert "given more than once" in refuse("compare", first, first)
    assert "There is no run at" in refuse("compare", first, tmp_path / "no")
    assert "There is no run at third" in refuse("compare", first, second, "--baseline", "third")
    assert "--minutes belongs to --series" in refuse("compare", first, second, "--minutes", 1)
    assert "--set belongs to --series" in refuse("compare", first, second, "--set", "a=1")
    assert "--story was renamed: use --series" in refuse("compare", "--story")
    assert "leave out the folders" in refuse("compare", first, "--series")
    assert "no such folder" in refuse("compare", "--series", "--data", tmp_path / "no")
    assert "not of the form" in refuse("compare", "--series", "--data", tmp_path, "--pair", "en")


def test_the_series_trains_every_model_and_compares_them(series: Path):
    found = json.loads((series / "comparison.json").read_text(encoding="utf-8"))
    assert list(found["models"]) == [entry.title for entry in ENTRIES.values()]
    assert found["baseline"] == "no attention"
    for name, entry in ENTRIES.items():
        assert (series / name / "best").is_dir()
        assert found["models"][entry.title]["updates"] == 4
    assert found["models"]["no attention"]["alignment_error_rate"] is None
    assert found["models"]["Transformer"]["alignment_error_rate"] is not None


def test_given_again_it_trains_nothing(
    series: Path, run: Callable, monkeypatch: pytest.MonkeyPatch
):
    two = {name: ENTRIES[name] for name in ("plain", "additive")}
    monkeypatch.setattr("regard.studies.model_series.ENTRIES", two)
    weights = series / "additive" / "best" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    answer = run(
        "compare", "--series", "--out", series, "--baseline", "additive", "--json", *SERIES
    )
    assert answer.code == 0
    assert answer.json["baseline"] == "additive attention"
    assert weights.stat().st_mtime_ns == before


def test_the_series_on_a_users_files_with_a_test_set_of_its_own(
    run: Callable, toy_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    two = {name: ENTRIES[name] for name in ("plain", "transformer")}
    monkeypatch.setattr("regard.studies.model_series.ENTRIES", two)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("train", "valid"):
        for side, language in (("src", "en"), ("tgt", "de")):
            shutil.copy(toy_corpus / f"{name}.{side}", corpus / f"{name}.{language}")
    settings = [part for setting in QUICK for part in ("--set", setting)]
    answer = run("compare", "--series", "--data", corpus, "--out", tmp_path / "out", "--minutes", 1,
                 "--test", toy_corpus / "test.src", toy_corpus / "test.tgt", "--json",
                 *settings)  # fmt: skip
    assert answer.code == 0, answer.err
    assert list(answer.json["models"]) == ["no attention", "Transformer"]
    assert answer.json["sentences"] == 30


def test_an_interrupted_series_says_how_to_go_on(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def stopped(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("regard.tasks.translation.training.train_many", stopped)
    answer = run("compare", "--series", "--out", tmp_path / "out")
    assert answer.code == 130
    assert "Give the same command again to continue" in answer.err
