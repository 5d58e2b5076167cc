"""Every command in the documents is accepted by the real parser of options; nothing is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from regard.cli.app import app

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?:|console|sh|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\s*(?:\$ )?(?:\S+ \| )?(?:\S*/)?regard (?=[a-z-])(.*)$")


def commands(path: Path) -> Iterator[list[str]]:
    """Yield the words after `regard` of every command in a block of code."""
    for block in FENCE.findall(path.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            if found := COMMAND.match(line):
                lexer = shlex.shlex(found[1], posix=True, punctuation_chars=True)
                lexer.wordchars += "[]{}=,:%@~"
                words: list[str] = []
                for word in lexer:
                    if word in ("|", ">", "&&", "&", ";", "2>"):
                        break
                    words.append(word)
                yield words


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documented_commands_are_accepted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.runs.catalogue.use", lambda name: None)
    group: Any = typer.main.get_command(app)
    for words in commands(path):
        if words[0].startswith("--"):
            continue
        context = group.make_context("regard", words[:], resilient_parsing=True)
        name, command, rest = group.resolve_command(context, words[:])
        if "--help" in rest:
            continue
        try:
            command.make_context(name, rest, parent=context)
        except Exception as error:
            pytest.fail(f"{path.name}: regard {' '.join(words)}: {error}")


def test_the_documents_hold_commands() -> None:
    assert sum(len(list(commands(path))) for path in DOCUMENTS) > 50


def test_a_wrong_option_would_be_found() -> None:
    group: Any = typer.main.get_command(app)
    command = group.commands["translate"]
    with pytest.raises(Exception, match="--no-such-option"):
        command.make_context("translate", ["runs/mine", "--no-such-option"])
