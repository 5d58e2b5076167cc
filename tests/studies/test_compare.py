from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import pytest

from regard.base.errors import RunError, SettingsError
from regard.scoring.bleu import corpus_bleu
from regard.studies.compare import Comparison, compare, named_runs


@pytest.fixture(scope="module")
def comparison(toy_run: Path, random_transformer_run: Path) -> Comparison:
    runs = {"untrained": random_transformer_run, "attention": toy_run}
    return compare(runs, rounds=2, samples=150)


def test_all_translate_the_same_sentences(comparison: Comparison, toy_corpus: Path):
    sources = (toy_corpus / "test.src").read_text(encoding="utf-8").splitlines()
    assert [pair.source for pair in comparison.pairs] == sources
    for each in comparison.contestants.values():
        assert [translation.source for translation in each.evaluation.translations] == sources


def test_scores_differences_and_speeds(comparison: Comparison):
    trained, baseline = (comparison.contestants[name] for name in ("attention", "untrained"))
    references = [pair.target for pair in comparison.pairs]
    assert trained.evaluation.bleu == corpus_bleu(trained.outputs, references)
    assert trained.paired.difference > 30
    assert trained.paired.p_value is not None
    assert trained.paired.p_value < 0.01
    assert trained.paired.interval.low <= trained.evaluation.bleu.value
    assert baseline.paired.p_value is None
    assert baseline.speed_ratio == 1
    assert len(trained.speeds) == 2
    assert trained.speed_ratio > 0


def test_bands_are_the_same_for_all(comparison: Comparison):
    bands = list(comparison.bands().values())
    ends = [[(one.band.low, one.band.high) for one in each] for each in bands]
    assert ends[0] == ends[1]


def test_rows_hold_what_is_known_and_none_for_what_is_not(comparison: Comparison):
    untrained, trained = comparison.rows()
    assert untrained["model"] == "untrained"
    assert untrained["training_minutes"] is None
    assert untrained["updates"] is None
    assert trained["updates"] == 300
    assert trained["training_minutes"] > 0
    assert trained["parameters"] > 1000
    assert trained["alignment_error_rate"] is None  # nobody knows the right one


def test_it_is_plain_values_with_its_evidence(comparison: Comparison):
    plain = comparison.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["baseline"] == "untrained"
    assert plain["sentences"] == 30
    assert "tok:13a" in plain["signatures"]["bleu"]
    assert "bs:150|seed:12345" in plain["signatures"]["paired_bootstrap"]
    assert set(plain["models"]) == {"untrained", "attention"}


def test_another_baseline_tokenizer_and_test_set(toy_run: Path, toy_corpus: Path, tmp_path: Path):
    files = []
    for side in ("src", "tgt"):
        lines = (toy_corpus / f"valid.{side}").read_text(encoding="utf-8").splitlines()[:8]
        files.append(tmp_path / f"new.{side}")
        files[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    stages = []

    @contextmanager
    def stage(message: str):
        stages.append(message)
        yield

    found = compare(
        {"a": toy_run, "b": toy_run},
        test=(files[0], files[1]),
        baseline="b",
        tokenize="none",
        rounds=1,
        samples=20,
        stage=stage,
    )
    assert found.baseline == "b"
    assert len(found.pairs) == 8
    assert "tok:none" in found.to_dict()["signatures"]["bleu"]
    assert found.contestants["a"].paired.difference == 0
    assert stages[1] == "Translating 8 sentences: a ..."


def test_what_cannot_be_compared_is_refused(toy_run: Path, tmp_path: Path):
    with pytest.raises(SettingsError, match="needs two runs or more, not 1"):
        compare({"a": toy_run})
    both = {"a": toy_run, "b": toy_run}
    with pytest.raises(SettingsError, match="Unknown baseline 'c'"):
        compare(both, baseline="c")
    with pytest.raises(SettingsError, match="unknown BLEU tokenizer 'moses'"):
        compare(both, tokenize="moses")
    with pytest.raises(RunError, match="There is no run at"):
        compare({"a": toy_run, "b": tmp_path / "nothing"})
    (tmp_path / "recipe.toml").write_text('task = "language-model"\n', encoding="utf-8")
    with pytest.raises(RunError, match="a run of the task 'language-model': compare takes transla"):
        compare({"a": toy_run, "b": tmp_path})


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["runs/plain", "runs/dot"], ["plain", "dot"]),
        (["runs/a/best", "runs/b/best"], ["a/best", "b/best"]),
        (["x/a/best", "y/a/best"], ["x/a/best", "y/a/best"]),
        (["one/"], ["one"]),
        ([], []),
    ],
)
def test_runs_are_called_by_what_tells_them_apart(folders, names):
    found = named_runs([Path(folder) for folder in folders])
    assert list(found) == names
    assert list(found.values()) == [Path(folder) for folder in folders]


def test_one_run_twice_is_refused(tmp_path: Path):
    with pytest.raises(SettingsError, match="is given more than once: compare it with another"):
        named_runs([tmp_path, tmp_path / ".." / tmp_path.name])
