from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

TEXT, TRANSLATION = "badal kofen migon", "LADAB NEFOK NOGIM"


def test_text(run: Any, toy_run: Path) -> None:
    assert run("translate", toy_run, TEXT).out == TRANSLATION + "\n"


def test_text_of_several_lines(run: Any, toy_run: Path) -> None:
    assert run("translate", toy_run, "badal\n\nkofen").lines == ["LADAB", "", "NEFOK"]


def test_standard_input(run: Any, toy_run: Path) -> None:
    answer = run("translate", toy_run, stdin=b"badal kofen\r\n\nmigon\n")
    assert answer.lines == ["LADAB NEFOK", "", "NOGIM"]


def test_files(run: Any, toy_run: Path, toy_corpus: Path, tmp_path: Path) -> None:
    out, links = tmp_path / "out.txt", tmp_path / "out.align"
    answer = run(
        "translate", toy_run, "--input", toy_corpus / "test.src", "--output", out, "--align", links
    )
    assert (answer.code, answer.out) == (0, "")
    sources = (toy_corpus / "test.src").read_text(encoding="utf-8").splitlines()
    translated = out.read_text(encoding="utf-8").splitlines()
    assert len(translated) == len(sources) == len(links.read_text().splitlines())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.align", "out.txt"]


def test_alignments(run: Any, toy_run: Path, tmp_path: Path) -> None:
    run("translate", toy_run, f"{TEXT}\n", "--align", tmp_path / "links")
    assert (tmp_path / "links").read_text() == "0-0 1-1 2-2\n"


def test_json(run: Any, toy_run: Path) -> None:
    (found,) = run("translate", toy_run, TEXT, "--json").json
    assert (found["source"], found["text"]) == (TEXT, TRANSLATION)
    assert found["score"] <= 0
    assert len(found["attention"]["weights"]) == len(found["attention"]["target"])


def test_json_goes_to_the_output_file_too(run: Any, toy_run: Path, tmp_path: Path) -> None:
    answer = run("translate", toy_run, TEXT, "--json", "--output", tmp_path / "out.json")
    assert answer.out == ""
    assert TRANSLATION in (tmp_path / "out.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("options", [[], ["--beam", "2"]])
def test_n_best(run: Any, toy_run: Path, options: list[str]) -> None:
    lines = run("translate", toy_run, TEXT, "--n-best", "3", *options).lines
    scores, texts = zip(*(line.split(" ||| ") for line in lines), strict=True)
    assert texts[0] == TRANSLATION
    assert len(set(texts)) == 3
    assert [float(s) for s in scores] == sorted((float(s) for s in scores), reverse=True)


def test_greedy(run: Any, toy_run: Path) -> None:
    assert run("translate", toy_run, TEXT, "--beam", "1").out == TRANSLATION + "\n"


LONG = b"badal\n" + b"badal " * 100_000 + b"\n"

# Name of the case: the bytes of the input, and the message, after the name of the file.
BAD_INPUTS = {
    "invalid UTF-8": (b"badal\nko\xfffen\n", ", line 2: invalid UTF-8"),
    "empty": (b"", ": the file is empty"),
    "a line of 100,000 words": (LONG, ", line 2: the line has 100000 words, more than the 5000"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_input_is_named_with_file_and_line(
    refuse: Any, toy_run: Path, tmp_path: Path, case: str
) -> None:
    content, message = BAD_INPUTS[case]
    path = tmp_path / "in.txt"
    path.write_bytes(content)
    out = tmp_path / "out.txt"
    out.write_text("kept", encoding="utf-8")
    assert f"{path}{message}" in refuse("translate", toy_run, "--input", path, "--output", out)
    assert f"standard input{message}" in refuse("translate", toy_run, stdin=content)
    assert out.read_text(encoding="utf-8") == "kept"


def test_mistakes(refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    cases: list[tuple[list[object], str]] = [
        ([toy_run, "--input", tmp_path / "no.txt"], "no.txt: there is no such file"),
        ([toy_run, "x", "--input", tmp_path / "no.txt"], "Give either TEXT or --input, not both."),
        ([toy_run, "x", "--output", tmp_path / "no/out"], "there is no folder"),
        ([toy_run, "x", "--output", tmp_path], "Cannot write"),
        ([tmp_path / "no", "x"], "There is no run at"),
        ([tmp_path, "x"], "it has no recipe.toml"),
        ([toy_run, "badal " * 100_000], "Sentence 1 has 100000 words"),
    ]
    for arguments, message in cases:
        assert message in refuse("translate", *arguments)


def test_a_checkpoint_cut_short(refuse: Any, toy_run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(toy_run, copy)
    weights = copy / "best" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert f"{weights} is missing or damaged (was it cut short?)" in refuse("translate", copy, "x")
