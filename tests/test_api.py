"""The program as a Python API: functions of the same names as the commands, with typed results."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path

import pytest

import regard
from regard.base.errors import SettingsError
from regard.documents.translation import SearchOptions

COMMANDS = ("train", "load", "compare", "score", "forecast", "corpus", "look", "trace")


def test_dir_and_help_are_useful() -> None:
    assert set(COMMANDS) <= set(dir(regard))
    assert not [name for name in dir(regard) if name.startswith("_") and name != "__version__"]
    for name in COMMANDS:
        assert inspect.getdoc(getattr(regard, name)), name
        assert f"{name}(" in (regard.__doc__ or ""), name


def test_a_wrong_kind_of_position_is_refused_before_data_is_read(tmp_path: Path) -> None:
    given = {"data.train": ["no.src", "no.tgt"], "model.positions": "rotari"}
    with pytest.raises(SettingsError, match="rotary"):
        regard.train("transformer-tiny", set=given, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        regard.trian  # noqa: B018


def test_scores_of_lists_and_files_are_the_same(tmp_path: Path) -> None:
    outputs, references = ["a b c d", "e f g h"], ["a b c d", "e f g i"]
    (tmp_path / "out").write_text("\n".join(outputs) + "\n", encoding="utf-8")
    (tmp_path / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    found = regard.score(outputs, references, source=references, by_length=True)
    assert found.bleu == regard.score(tmp_path / "out", str(tmp_path / "ref")).bleu
    assert found.by_length
    assert found.to_dict()["by_length"]
    assert found.bleu.signature in str(found)
    assert "<svg" in found._repr_html_()
    assert "<svg" not in regard.score(outputs, references)._repr_html_()
    with pytest.raises(SettingsError, match="needs the source sentences"):
        regard.score(outputs, references, by_length=True)


def test_alignments_of_two_directions_are_scored(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("0-0 1-1\n", encoding="utf-8")
    (tmp_path / "back").write_text("0-0 1-1\n", encoding="utf-8")
    (tmp_path / "gold").write_text("0-0 1-1\n", encoding="utf-8")
    both = regard.score_alignments(tmp_path / "there", tmp_path / "gold", reverse=tmp_path / "back")
    assert both.value == 0
    assert regard.score_alignments(tmp_path / "there", tmp_path / "gold").value == 0


def test_a_corpus_is_returned_and_written(tmp_path: Path) -> None:
    sizes = {"size": 12, "valid_size": 3, "test_size": 2}
    found = regard.corpus(**sizes, words="small", length=(3, 6), seed=4)
    assert [len(part) for part in (found.train, found.valid, found.test)] == [12, 3, 2]
    assert found.to_dict() == {"train": 12, "valid": 3, "test": 2}
    assert found.train[0].source in found._repr_html_()
    written = regard.corpus(**sizes, words="small", length=(3, 6), seed=4, out=tmp_path / "c")
    assert written.train == found.train
    lines = (tmp_path / "c" / "train.en").read_text(encoding="utf-8").splitlines()
    assert lines == [pair.source for pair in found.train]
    with pytest.raises(SettingsError, match="must not exceed"):
        regard.corpus(length=(9, 4))
    with pytest.raises(SettingsError, match="Unknown corpus 'gramar'"):
        regard.corpus("gramar")


def test_a_series_is_forecast(tmp_path: Path) -> None:
    series = [float(number % 5) for number in range(120)]
    small = {"training.steps": 20, "data.window": 10}
    found = regard.forecast(series, out=tmp_path / "run", set=small, progress=False)
    assert len(found.upcoming()) == 1
    assert found.report.is_file()
    assert all(path.is_file() for path in found.pictures)
    assert "<svg" in found._repr_html_()
    with pytest.raises(SettingsError, match="given in Python"):
        regard.look(tmp_path / "run")


def test_runs_are_compared(toy_run: Path, tmp_path: Path, toy_corpus: Path) -> None:
    other = shutil.copytree(toy_run, tmp_path / "other")
    test = (toy_corpus / "test.src", toy_corpus / "test.tgt")
    out = tmp_path / "comparison"
    found = regard.compare([toy_run, other], test=test, out=out, progress=False)
    assert found.baseline == toy_run.name
    assert [row["model"] for row in found.rows()] == [toy_run.name, "other"]
    assert list(out.glob("*.html"))
    named = {"ours": toy_run, "theirs": str(other)}
    again = regard.compare(named, test=test, baseline=str(other), progress=False)
    assert again.baseline == "theirs"
    assert "BLEU" in again._repr_html_()


def test_a_file_is_translated_as_by_the_command(toy_run: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("badal kofen\n\nmigon\n", encoding="utf-8")
    assert regard.translate_file(toy_run, source, output, progress=False) == output
    assert output.read_text(encoding="utf-8") == "LADAB NEFOK\n\nNOGIM\n"
    both = SearchOptions(n_best=2)
    regard.translate_file(toy_run, source, output, search=both, progress=False)
    assert output.read_text(encoding="utf-8").count("|||") == 5
    with pytest.raises(SettingsError, match="it is the input"):
        regard.translate_file(toy_run, source, source, progress=False)


def test_looking_and_tracing(toy_run: Path, tmp_path: Path) -> None:
    seen = regard.look(toy_run, "badal kofen")
    assert seen.text == "LADAB NEFOK"
    seen.save(tmp_path / "map.svg")
    assert (tmp_path / "map.svg").is_file()
    assert "<svg" in seen._repr_html_()
    assert "<table>" in regard.trace(toy_run, "badal kofen")._repr_html_()
    assert regard.trace(toy_run, "badal kofen").output == "LADAB NEFOK"
    assert regard.trace("fibonacci-rnn", "last").family == "forecaster"
    assert regard.trace(regard.find_recipe("fibonacci-rnn"), "last").output
    with pytest.raises(SettingsError, match="has no --node"):
        regard.look(toy_run, "badal", picture="node")
