from __future__ import annotations

import io
import itertools
import re
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

from regard.runs.display import BulkDisplay, TrainingDisplay, print_line, waiting
from regard.training.objective import Limits
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


def printed(line: str, *, width: int, terminal: bool = True) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=width, color_system=None)
    print_line(console, line)
    return file.getvalue().splitlines()


def test_a_row_is_wrapped_between_words_below_its_text() -> None:
    row = "memory      about 169 MB of tensors (weights 15, gradients 15, activations 107)"
    lines = printed(row, width=50)
    assert all(len(line) <= 50 for line in lines)
    assert lines[0].startswith("memory      about 169 MB")
    assert all(line.startswith(" " * 12) and line[12] != " " for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == " ".join(row.split())


def test_plain_text_is_wrapped_without_indent() -> None:
    lines = printed("three words of many. " * 6, width=50)
    assert len(lines) > 1 and not any(line.startswith(" ") for line in lines)


def test_a_log_and_a_very_narrow_terminal_get_whole_lines() -> None:
    row = "memory      about 169 MB of tensors (weights 15, gradients 15)"
    assert printed(row, width=20, terminal=False) == [row]
    assert printed(row, width=20) == [row]


def test_what_looks_like_markup_is_printed_as_it_is() -> None:
    assert printed("[bold] :cat: [/nothing]", width=80) == ["[bold] :cat: [/nothing]"]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_live_line_shows_what_fits(width: int) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, color_system=None)
    with TrainingDisplay(console, Limits(steps=8), title="A title that is much too long") as shown:
        shown.validated(Progress(step=1), {"loss": 1.25, "bleu": 40.0})
        progress = Progress(step=2, seconds=60.0)
        shown.updated(progress, UpdateResult(1.5, 300, 0.1), {"padding": 0.025})
        shown._bar.refresh()
    (live,) = {line.strip() for line in re.split(r"[\r\n]|\x1b\[\S*?[A-Za-z]", file.getvalue())
               if "ETA" in line}  # fmt: skip
    assert len(live) <= width
    assert "step     2  loss 1.5  ETA 3:00" in live
    assert "…" not in live.split("step")[1]  # whole facts, or none
    assert ("valid bleu 40" in live) == (width == 140)


def test_a_title_of_a_few_letters_is_always_shown() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=60, color_system=None)
    with BulkDisplay(console, "Translating") as shown:
        shown.moved(10, 0.5)
    assert isinstance(console.file, io.StringIO)
    assert "Translating" in console.file.getvalue()
