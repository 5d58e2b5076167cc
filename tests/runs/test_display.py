from __future__ import annotations

import io
import itertools
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

from regard.runs.display import TrainingDisplay, waiting
from regard.training.loop import Limits
from regard.training.progress import Progress
from regard.training.update import UpdateResult


def shown(*, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a training of four updates and one validation shows."""
    clock = itertools.count(0.0, 6.0)
    monkeypatch.setattr("regard.runs.display.time", SimpleNamespace(monotonic=lambda: next(clock)))
    console = Console(file=io.StringIO(), force_terminal=terminal, width=150)
    with TrainingDisplay(console, Limits(steps=8), title="attention") as display:
        for step in range(1, 5):
            progress = Progress(step=step, seconds=30.0 * step, best_step=4)
            display.updated(progress, UpdateResult(1.5, 300, 0.1), {"padding": 0.025})
        display.validated(progress, {"loss": 1.25, "bleu": 40.0})
        display.finished(progress, "all 4 updates done")
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_a_log_has_plain_lines_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(terminal=False, monkeypatch=monkeypatch).splitlines()
    training = [line for line in lines if "tokens/s" in line]
    assert 1 <= len(training) < 4
    assert "loss 1.5 " in training[-1]
    assert "10 tokens/s" in training[-1]  # 300 tokens in 30 seconds
    assert "padding 2.5%" in training[-1]
    assert "ETA 2:00" in training[-1]
    assert " ".join(lines[-2].split()) == "step 4 valid loss 1.25 valid bleu 40 (best so far)"
    assert lines[-1] == "stopped after 120 s: all 4 updates done"
    assert "\x1b" not in "".join(lines)


def test_a_terminal_has_a_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" in shown(terminal=True, monkeypatch=monkeypatch)


def waited(*, terminal: bool, seconds: float) -> str:
    file = io.StringIO()
    with waiting(Console(file=file, force_terminal=terminal), "Testing ..."):
        time.sleep(seconds)
    return file.getvalue()


def test_a_terminal_sees_at_once_what_is_waited_for() -> None:
    assert "Testing ..." in waited(terminal=True, seconds=0)


def test_a_log_hears_only_of_a_long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(terminal=False, seconds=0) == ""
    monkeypatch.setattr("regard.runs.display.SECONDS_WORTH_A_LINE", 0.0)
    assert waited(terminal=False, seconds=0.3) == "Testing ...\n"
