from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_two_texts_are_shown_symbol_by_symbol(run: Callable[..., Any], toy_run: Path) -> None:
    answer = run("rate", toy_run, "a b", "b a", "--json").json
    assert answer["pieces"][-1] == "</s>"
    assert answer["log_probability"] == pytest.approx(sum(answer["log_probabilities"]))
    shown = run("rate", toy_run, "a b", "b a").lines
    assert len(shown) == len(answer["pieces"]) + 1
    probability = math.exp(answer["log_probabilities"][0])
    assert float(shown[0].split()[0]) == pytest.approx(probability, abs=1e-4)
    assert "perplexity" in shown[-1]


def test_lines_of_two_files(run: Callable[..., Any], toy_run: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("a b\nb\n")
    target.write_text("b a\nb\n")
    lines = run("rate", toy_run, "--source", source, "--target", target).lines
    one = run("rate", toy_run, "a b", "b a", "--json").json
    score, log_probability, text = next(line for line in lines if "\tb a" in line).split("\t")
    assert text == "b a"
    assert float(score) == pytest.approx(one["score"], abs=1e-3)
    assert float(log_probability) == pytest.approx(one["log_probability"], abs=1e-3)
    assert len(run("rate", toy_run, "--source", source, "--target", target, "--json").json) == 2


def test_an_empty_file_has_nothing_to_rate(
    run: Callable[..., Any], toy_run: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    run("rate", toy_run, "--source", empty, "--target", empty)


@pytest.mark.parametrize(
    "arguments", [[], ["a"], ["a", "b", "--source", "x"], ["--source", "x"]], ids=str
)
def test_what_is_missing_is_named(
    refuse: Callable[..., str], toy_run: Path, arguments: list[str]
) -> None:
    assert "both --source and --target" in refuse("rate", toy_run, *arguments)


def test_files_must_be_parallel(refuse: Callable[..., str], toy_run: Path, tmp_path: Path) -> None:
    short, long = tmp_path / "short", tmp_path / "long"
    short.write_text("a\n")
    long.write_text("a\nb\n")
    assert "1 sources cannot be paired with 2" in refuse(
        "rate", toy_run, "--source", short, "--target", long
    )


def test_unknown_words_are_named(run: Any, toy_run: Path) -> None:
    answer = run("rate", toy_run, "Badal kofen", "LADAB nefok")
    assert answer.err == "[2 unknown words: Badal, nefok]\n"
    assert run("rate", toy_run, "Badal kofen", "LADAB", "--json").json["unknown"] == ["Badal"]
