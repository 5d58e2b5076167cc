from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

TEXT = "badal kofen migon"


def test_in_the_terminal(run: Any, toy_run: Path) -> None:
    out = run("look", toy_run, TEXT).out
    for word in (*TEXT.split(), "LADAB", "NEFOK", "NOGIM"):
        assert word in out
    assert out.endswith("LADAB NEFOK NOGIM\n")


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".csv", b""), (".json", b"{")],
)
def test_as_a_file(run: Any, toy_run: Path, tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"map{suffix}"
    answer = run("look", toy_run, TEXT, "--out", path)
    assert answer.out == f"LADAB NEFOK NOGIM\nWrote {path}\n"
    assert path.read_bytes().lstrip().startswith(start)
    assert path.stat().st_size > 50


def test_json_by_words_and_by_pieces(run: Any, toy_run: Path) -> None:
    words = run("look", toy_run, TEXT, "--json").json["attention"]
    assert (words["source"], words["target"]) == (TEXT.split(), ["LADAB", "NEFOK", "NOGIM"])
    pieces = run("look", toy_run, TEXT, "--pieces", "--json").json["attention"]
    assert pieces["source"][-1] == pieces["target"][-1] == "</s>"


@pytest.mark.parametrize(
    ("options", "suffix", "said"),
    [
        pytest.param(["--part", "cross"], ".csv", True, id="all heads"),
        pytest.param(["--part", "encoder", "--layer", "1"], ".csv", True, id="a layer"),
        pytest.param(["--layer", "1", "--head", "0"], ".csv", True, id="one head"),
        pytest.param(["--word", "kofen"], ".csv", True, id="a word"),
        pytest.param(["--arcs", "--layer", "0"], ".json", True, id="arcs"),
        pytest.param(["--positions", "own"], ".csv", False, id="positions"),
    ],
)
def test_views_of_a_transformer(
    run: Any, random_transformer_run: Path, tmp_path: Path, options: list[str], suffix: str,
    said: bool,
) -> None:  # fmt: skip
    path = tmp_path / f"view{suffix}"
    answer = run("look", random_transformer_run, TEXT, *options, "--out", path)
    assert answer.code == 0, answer.err
    assert answer.lines[-1] == f"Wrote {path}"
    assert len(answer.lines) == 1 + said
    assert path.stat().st_size > 50
    assert run("look", random_transformer_run, TEXT, *options, "--json").json


def test_what_a_word_looks_at_is_printed(run: Any, random_transformer_run: Path) -> None:
    lines = run("look", random_transformer_run, TEXT, "--word", "kofen").lines
    assert [line.split(":")[0] for line in lines] == [
        f"layer {layer}, mean of 2 heads" for layer in (0, 1)
    ]


def test_curves_and_positions(run: Any, toy_run: Path, tmp_path: Path) -> None:
    run("look", toy_run, "--curves", "--out", tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_text().startswith("model,kind,step,seconds,loss")
    run("look", "--positions", "alibi", "--out", tmp_path / "p.json")
    assert "head 7" in (tmp_path / "p.json").read_text()


def test_a_script_without_a_font_is_warned_about(
    run: Any, monkeypatch: pytest.MonkeyPatch, toy_run: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr("regard.pictures.labels.families_with", lambda characters: [])
    monkeypatch.setattr("regard.pictures.labels.preferred_families", lambda: ["DejaVu Sans"])
    answer = run("look", toy_run, "badal 猫", "--out", tmp_path / "map.png")
    assert answer.code == 0
    assert "Warning: No installed font has this script: Chinese." in answer.err
    assert "fonts-noto-cjk" in answer.err


def test_a_classifier_shows_whom_it_takes_for_whom(run: Any, refuse: Any, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text('task = "classify-text"', encoding="utf-8")
    assert "test.json is missing or damaged" in refuse("look", tmp_path, "--json")
    found = {"labels": ["a", "b"], "confusion": [[1, 2], [0, 4]]}
    (tmp_path / "test.json").write_text(json.dumps(found), encoding="utf-8")
    run("look", tmp_path, "--out", tmp_path / "c.csv")
    assert "a,b,2" in (tmp_path / "c.csv").read_text()


def test_a_series_is_shown_with_its_forecasts(run: Any, refuse: Any, tmp_path: Path) -> None:
    fast = ["--set", "training.steps=2", "--set", "training.warmup=0", "--set", "training.seeds=1"]
    run("train", "fibonacci-lecture", "--out", tmp_path / "f", *fast)
    run("look", tmp_path / "f", "--out", tmp_path / "f.csv")
    assert (tmp_path / "f.csv").read_text().startswith("time,series,forecast\n")
    assert run("look", tmp_path / "f", "--json").json["windows"] == 354
    assert "Name a picture to write with --out" in refuse("look", tmp_path / "f")


# Options, and what is said about them.
MISTAKES = {
    "a layer that is not there": (["--layer", "9", "--json"], "layers are 0 to 1"),
    "a head without a layer": (["--head", "0", "--out", "x.png"], "Say of which layer: 0 to 1"),
    "a word that is not there": (["--word", "zebra"], "The text has no word 'zebra'"),
    "a node of a translator": (["--node", "3"], "has no --node; it can show --word, --arcs, "),
    "two pictures": (["--word", "badal", "--arcs"], "--word and --arcs are different pictures"),
    "arcs to another sentence": (["--arcs", "--part", "cross", "--out", "x.png"],
                                 "Only self-attention"),
    "a picture without a place": (["--part", "encoder"], "Name a picture to write with --out"),
    "an unknown part": (["--part", "encodr"], "Did you mean 'encoder'"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_of_views(refuse: Any, random_transformer_run: Path, case: str) -> None:
    options, message = MISTAKES[case]
    assert message in refuse("look", random_transformer_run, TEXT, *options)


def test_mistakes(refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    assert "the text is empty" in refuse("look", toy_run, " ")
    assert "There is no run at" in refuse("look", tmp_path / "no", "x")
    assert "Name a run to look at" in refuse("look")
    assert "Give a sentence to look at" in refuse("look", toy_run)
    assert "only a Transformer has them" in refuse("look", toy_run, TEXT, "--layer", "0", "--json")
    assert ".gif" in refuse("look", toy_run, TEXT, "--out", tmp_path / "map.gif")


def test_unknown_words_are_warned_about(run: Any, toy_run: Path) -> None:
    assert "[1 unknown word: Badal]" in run("look", toy_run, "Badal kofen").err
    assert run("look", toy_run, "badal kofen").err == ""


def test_one_step_of_a_translation(run: Any, refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    shown = run("look", toy_run, TEXT, "--step", "2").out
    assert shown.startswith("step 2: LADAB NEFOK\n") and "kofen" in shown
    whole = run("look", toy_run, TEXT, "--json").json["attention"]["weights"]
    found = run("look", toy_run, TEXT, "--step", "2", "--json").json
    assert found["weights"] == whole[1] and found["written"] == ["LADAB", "NEFOK"]
    for suffix in (".svg", ".csv"):
        path = tmp_path / f"step{suffix}"
        assert run("look", toy_run, TEXT, "--step", "3", "--out", path).lines[-1] == f"Wrote {path}"
        assert "kofen" in path.read_text(encoding="utf-8")
    assert "steps 1 to 3 (LADAB NEFOK NOGIM)" in refuse("look", toy_run, TEXT, "--step", "0")
    assert "no step 4" in refuse("look", toy_run, TEXT, "--step", "4")
    assert "ask for one" in refuse("look", toy_run, TEXT, "--step", "1", "--arcs")
