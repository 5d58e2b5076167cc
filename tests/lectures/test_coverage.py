"""The table of the guide: every command in it runs, those that train with small sizes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from regard.cli.app import main
from regard.lectures.guide import COVERAGE, page_named

ROW = re.compile(r"^\| [^|]+ \| `(regard [^`]+)` \|$", re.MULTILINE)
COMMANDS = sorted(set(ROW.findall(page_named(COVERAGE).markdown)))

FEW_PAIRS = [
    "--set",
    "training.steps=2",
    "--set",
    "data.grammar.size=50",
    "--set",
    "data.grammar.valid_size=5",
    "--set",
    "data.grammar.test_size=5",
]
# Commands that train: what makes them small, and whether they are left to `make test-all`.
SMALL = {
    "train fibonacci": ["--set", "training.steps=2", "--set", "training.seeds=1"],
    "train simple": [*FEW_PAIRS, "--set", "model.hidden=8", "--set", "model.embedding=8"],
    "train seq2seq": [*FEW_PAIRS, "--set", "model.hidden=8", "--set", "model.embedding=8"],
    "train gat": ["--set", "training.steps=2", "--set", "training.seeds=1"],
    "train gpt-nano": ["--set", "training.steps=2", "--set", "model.layers=1",
                       "--set", "model.model_dim=8", "--set", "model.feed_forward=8",
                       "--set", "model.heads=2", "--set", "model.context=16"],
    "train --from": ["--set", "training.epochs=1"],
    "gradients": ["--length", "4", "--steps", "1"],
    "study scaling": ["--seeds", "1", "--tokens", "8192"],
    "ladder": ["--steps", "1"],
    "demo": FEW_PAIRS,
    "compare --series": ["--minutes", "0.01", *FEW_PAIRS],
}  # fmt: skip
SLOW = ("demo", "study efficiency", "study scaling", "compare", "ladder", "gradients", "train",
        "generate", "lecture decoders", "summary gpt2",
        "summary transformer-base", "summary bahdanau")  # fmt: skip
FILES = ("book.txt", "reviews.tsv")
WORDS = {"cats": "badal", "like": "kofen", "dogs": "migon", "do": "bafen", "not": "rulis"}


def test_the_table_has_every_part_of_the_lectures() -> None:
    page = page_named(COVERAGE).markdown
    assert len(COMMANDS) > 50
    assert len(ROW.findall(page)) == len(re.findall(r"^\| [^|]+ \| .*regard", page, re.MULTILINE))
    assert page.index("## Not shown") > page.index("## Graphs")


def marked(command: str) -> Any:
    slow = command.removeprefix("regard ").startswith(SLOW)
    return pytest.param(command, marks=[pytest.mark.slow] if slow else [], id=command[7:70])


@pytest.mark.parametrize("command", [marked(each) for each in COMMANDS])
def test_a_command_of_the_table_runs(
    command: str,
    stand_ins: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = []
    for word in shlex.split(command.removeprefix("regard ")):
        previous = words[-1] if words else ""
        reads = previous != "--out" and (word.startswith("runs/") or word in FILES)
        words.append(str(stand_ins(word)) if reads else word)
    if any(word.startswith("runs/demo") for word in shlex.split(command)):
        words = [" ".join(WORDS.get(part, part) for part in word.split()) for word in words]
    for name, extra in SMALL.items():
        if " ".join(words).startswith(name):
            words += extra
    try:
        main(words)
    except SystemExit as stop:
        assert not stop.code, capsys.readouterr().err
    told = re.findall(r"Wrote (\S+)", capsys.readouterr().out)
    assert all((tmp_path / name).stat().st_size > 100 for name in told)


@pytest.fixture(scope="module")
def stand_ins(
    toy_run: Path, random_transformer_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return the small run or file that stands for one of the table."""
    folder = tmp_path_factory.mktemp("coverage")
    book, reviews = folder / "book.txt", folder / "reviews.tsv"
    plain = copytree(toy_run, folder / "plain")  # of two runs that are compared, one
    book.write_text("to be or not to be that is the question\n" * 200, encoding="utf-8")
    reviews.write_text("what a film\tgood\nwhat a bore\tbad\n" * 30, encoding="utf-8")

    def language_model() -> Path:
        run = folder / "book"
        if not run.exists():
            small = SMALL["train gpt-nano"]
            main_quietly(["train", "gpt-nano", "--data", str(book), "--out", str(run), *small])
        return run

    def found(name: str) -> Path:
        if name == "runs/book":
            return language_model()
        return {
            "book.txt": book,
            "reviews.tsv": reviews,
            "runs/demo/plain": plain,
            "runs/demo/transformer": random_transformer_run,
        }.get(name, toy_run)

    return found


def main_quietly(words: list[str]) -> None:
    try:
        main(words)
    except SystemExit as stop:
        assert not stop.code
