from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.main import get_command

from regard import __version__
from regard.cli import app
from regard.cli.options import load_torch

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


SYSTEM_ERRORS: dict[str, tuple[Exception, str, int]] = {
    "a full disk": (
        OSError(errno.ENOSPC, "No space left on device", "runs/a/.x.1-0.writing"),
        "runs/a: there is no space left on the disk. Free some, or choose another folder.", 2),
    "a full disk without a name": (
        OSError(errno.ENOSPC, "No space left on device"),
        "there is no space left on the disk. Free some, or choose another folder.", 2),
    "a quota": (OSError(errno.EDQUOT, "x", "a"), "a: your share of the disk is used up.", 2),
    "a read-only disk": (OSError(errno.EROFS, "x", "a"), "a: the file system is read-only.", 2),
    "no permission": (PermissionError(errno.EACCES, "x", "a"), "a: there is no permission.", 2),
    "not permitted": (PermissionError(errno.EPERM, "x", "a"), "a: this is not permitted.", 2),
    "no file": (FileNotFoundError(errno.ENOENT, "x", "a"), "a: there is no such file", 2),
    "a file as folder": (OSError(errno.ENOTDIR, "x", "a/b"), "a/b: a part of the path is a", 2),
    "a folder": (IsADirectoryError(errno.EISDIR, "x", "a"), "a: this is a folder. Name a file.", 2),
    "there already": (FileExistsError(errno.EEXIST, "x", "a"), "a: this exists already.", 2),
    "a long name": (OSError(errno.ENAMETOOLONG, "x", "a"), "a: the name is too long.", 2),
    "many files": (OSError(errno.EMFILE, "x"), "too many files are open. Raise the limit, as", 2),
    "a broken disk": (OSError(errno.EIO, "x", "a"), "a: the disk does not work properly.", 2),
    "anything else": (OSError(errno.ELOOP, "Too many links", "a"), "a: too many links. Try", 2),
    "nothing said": (OSError(), "OSError. Try again.", 2),
    "no memory": (MemoryError(), "The memory is full. Use a smaller model", 1),
    "no memory for torch": (
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        "The memory is full. Use a smaller model", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", SYSTEM_ERRORS)
def test_what_the_system_refuses_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    error, said, code = SYSTEM_ERRORS[name]

    def refused(arguments: list[str] | None) -> None:
        raise error

    monkeypatch.setattr(app, "app", refused)
    with pytest.raises(SystemExit) as caught:
        app.main([])
    assert caught.value.code == code
    assert capsys.readouterr().err.lower().startswith(f"error: {said}".lower())


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: list[str] | None) -> None:
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(app, "app", broken)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        app.main([])


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    out = tmp_path / "a"
    out.write_text("in the way")
    script = "import sys; from regard.cli.app import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", script, "corpus", "grammar", "--size", "1", "--out", str(out)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 2
    assert found.stderr.startswith("Error: ")
    assert "Traceback" not in found.stderr


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


def commands(group: Any, *before: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with the words that call it."""
    for name, command in group.commands.items():
        yield (*before, name), command
        if hasattr(command, "commands"):
            yield from commands(command, *before, name)


def test_help_shows_all_that_was_written(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich takes brackets for markup and swallows them, unless they are escaped."""
    monkeypatch.setenv("COLUMNS", "200")
    seen = 0
    for words, command in commands(typer.main.get_command(app.app)):
        shown = re.sub(r"[\s│]+", " ", run(*words, "--help").out)
        written = [command.help or "", *(getattr(p, "help", "") or "" for p in command.params)]
        for text in written:
            for line in filter(None, text.split("\n\n")):
                seen += 1
                assert re.sub(r"\s+", " ", line).strip().rstrip("\f") in shown, words
    assert seen > 100


def test_a_terminal_sees_at_once_that_the_program_begins() -> None:
    for terminal, shown in ((True, "Starting ..."), (False, "")):
        file = StringIO()
        load_torch(Console(file=file, force_terminal=terminal))
        assert shown in file.getvalue() and bool(shown) == bool(file.getvalue())


def test_the_package_can_be_run_as_a_module() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "regard", "--version"], capture_output=True, text=True, check=True
    )
    assert __version__ in answer.stdout


def test_every_command_that_computes_takes_a_device() -> None:
    commands = get_command(app.app).commands
    options = {name: {o for p in found.params for o in p.opts} for name, found in commands.items()}
    without = {name for name, found in options.items() if "--device" not in found}
    groups = {name for name, found in commands.items() if hasattr(found, "commands")}
    assert groups == {"corpus", "exercise", "museum", "study"}
    assert without - groups == {"recipes", "score", "import", "illustrate", "summary"}
    visit = commands["museum"].commands["visit"]
    assert "--device" in {option for found in visit.params for option in found.opts}


def test_a_device_that_is_not_there_is_refused_before_anything_is_read(
    run: Any, tmp_path: Path
) -> None:
    found = run("train", "seq2seq-attention", "--out", tmp_path / "run", "--device", "gpu")
    assert found.code == 2
    assert 'The device "gpu" is not there. Here are "cpu"' in found.err
    assert not (tmp_path / "run").exists()
