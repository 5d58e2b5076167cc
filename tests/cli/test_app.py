from __future__ import annotations

import os
from typing import Any

import pytest
from typer.main import get_command

from regard import __version__
from regard.cli import app

COMMANDS = sorted(command.name or "" for command in get_command(app.app).commands.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run: Any, command: str) -> None:
    answer = run(command, "--help")
    assert answer.code == 0
    assert f"Example: regard {command}" in " ".join(answer.out.split())


def test_help_lists_the_commands(run: Any) -> None:
    out = run("--help").out
    assert all(command in out for command in COMMANDS)


def test_a_wrong_option_is_a_users_mistake(run: Any) -> None:
    answer = run("translate", "--no-such-option")
    assert answer.code == 2
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, str(app.LOOKS)),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "active"}, None),
    ],
    ids=["nothing said", "a number", "a policy"],
)
def test_idle_threads_soon_sleep_unless_the_user_says_otherwise(
    run: Any, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], expected: str | None
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    run("recipes")
    assert os.environ.get("GOMP_SPINCOUNT") == expected


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 0)])
def test_interruptions_end_quietly(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException], code: int
) -> None:
    def stopped(arguments: list[str] | None) -> None:
        raise error

    monkeypatch.setattr(app, "app", stopped)
    monkeypatch.setattr("sys.stderr", open("/dev/null", "w"))  # noqa: PTH123, SIM115
    with pytest.raises(SystemExit) as stop:
        app.main([])
    assert stop.value.code == code


def test_version(run: Any) -> None:
    answer = run("--version")
    assert (answer.code, answer.out) == (0, f"regard {__version__}\n")
