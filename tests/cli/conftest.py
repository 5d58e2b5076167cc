"""The program as a user runs it, but in this process."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from regard.cli.app import main


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    """Return a function that runs `regard` with these arguments."""

    def call(*arguments: object, stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def refuse(run: Callable[..., Answer]) -> Callable[..., str]:
    """Return a function that expects a user's mistake and returns the one sentence about it."""

    def call(*arguments: object, stdin: bytes = b"") -> str:
        answer = run(*arguments, stdin=stdin)
        assert answer.code == 2, answer
        assert answer.out == ""
        sentence = answer.err.splitlines()[-1]
        assert sentence.startswith("Error: "), answer.err
        assert answer.err.count("Error") == 1
        assert "Traceback" not in answer.err
        return sentence

    return call
