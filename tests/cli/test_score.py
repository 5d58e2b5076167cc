from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def files(toy_corpus: Path) -> list[object]:
    reference = toy_corpus / "test.tgt"
    return ["--system", reference, "--reference", reference]


def test_scores_carry_their_signature(run: Any, files: list[object]) -> None:
    first, second = run("score", *files).lines
    assert "BLEU" in first
    assert "100.0" in first
    assert "tok:13a" in first
    assert "chrF" in second


def test_by_length(run: Any, files: list[object], toy_corpus: Path) -> None:
    source = ["--source", toy_corpus / "test.src", "--by-length"]
    assert "sentences" in run("score", *files, *source).out
    found = run("score", *files, *source, "--json").json
    assert found["bleu"]["value"] == pytest.approx(100)
    assert found["bleu"]["signature"]
    assert sum(band["sentences"] for band in found["by_length"]) == 30


def test_mistakes(refuse: Any, files: list[object], toy_corpus: Path, tmp_path: Path) -> None:
    short, bad, empty = tmp_path / "short", tmp_path / "bad", tmp_path / "empty"
    short.write_text("LADAB\n", encoding="utf-8")
    bad.write_bytes(b"a\n\xff\n")
    empty.write_bytes(b"")
    reference = toy_corpus / "test.tgt"

    def message(system: Path) -> str:
        return str(refuse("score", "--system", system, "--reference", reference))

    assert "--by-length needs the source" in refuse("score", *files, "--by-length")
    assert "no such file" in message(tmp_path / "none")
    assert f"{bad}, line 2: invalid UTF-8" in message(bad)
    assert f"{empty}: the file is empty" in message(empty)
    unequal = message(short)
    assert "1 " in unequal
    assert "30 " in unequal


@pytest.fixture
def alignments(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "system": "0-0 1-1\n0-0\n",
        "reverse": "0-0 1-1 2-2\n0-0\n",
        "gold": "0-0 1-1 2-2\n0-0 0p1\n",
        "from one": "1-1 2-2 3-3\n1-1 1p2\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


def test_alignments_have_an_error_rate(run: Any, alignments: dict[str, Path]) -> None:
    files = ["--align", "--system", alignments["system"], "--reference"]
    found = run("score", *files, alignments["gold"], "--json").json["aer"]
    assert found["value"] == pytest.approx(100 * (1 - 6 / 7))
    assert run("score", *files, alignments["gold"]).lines[0].startswith("AER")
    wrong = run("score", *files, alignments["from one"])
    assert "if its words count from 1, give --gold-first 1" in wrong.err
    right = run("score", *files, alignments["from one"], "--gold-first", 1, "--json")
    assert right.json["aer"] == found
    assert right.err == ""


def test_two_directions_become_one(run: Any, alignments: dict[str, Path]) -> None:
    files = ["--align", "--system", alignments["system"], "--reference", alignments["gold"]]
    found = run("score", *files, "--reverse", alignments["reverse"], "--json").json["aer"]
    assert found["value"] == 0


def test_mistakes_with_alignments_are_named(
    refuse: Any, alignments: dict[str, Path], toy_corpus: Path
) -> None:
    files = ["--system", alignments["system"], "--reference", alignments["gold"]]
    assert "it needs --align" in refuse("score", *files, "--reverse", alignments["reverse"])
    source = ["--source", toy_corpus / "test.src"]
    assert "leave out --source" in refuse("score", *files, "--align", *source)
    both = ["--align", "--reverse", alignments["reverse"], "--symmetrise", "grow"]
    assert "unknown way to symmetrise alignments 'grow'" in refuse("score", *files, *both)


def test_letters_in_two_spellings_are_noticed(run: Any, tmp_path: Path) -> None:
    texts = {
        "nfc": "müde Bücher gefallen mir\nzwei\n",
        "nfd": "mu\u0308de Bücher gefallen mir\nzwei\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = ["--system", tmp_path / "nfd", "--reference", tmp_path / "nfc"]
    answer = run("score", *files)
    assert "100.0" in answer.lines[0]
    assert "unicode:nfc" in answer.lines[0]
    assert "1 translations and 0 references were not in Unicode's composed form" in answer.out
    assert run("score", *files, "--json").json["uncomposed"] == {"system": 1, "reference": 0}
