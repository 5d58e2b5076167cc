from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import torch
from torch import nn

from regard.base.errors import SettingsError
from regard.compute.device import processes_for
from regard.compute.processes import WorkerProcess

MODEL = nn.Linear(10, 100)


def processes(
    wanted: int | None = None,
    *,
    tokens: int = 8_192,
    compiled: bool = False,
    cores: int = 4,
    monkeypatch: pytest.MonkeyPatch,
) -> int:
    """Return how many processes train a small model on a machine with `cores` cores."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: cores)
    return processes_for(MODEL, wanted=wanted, tokens=tokens, compiled=compiled)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"cores": 2}, 2),
        ({"cores": 1}, 1),
        ({"cores": 16, "tokens": 4_096}, 2),  # more would have next to nothing to do
        ({"cores": 2, "tokens": 300}, 1),
        ({"cores": 2, "compiled": True}, 1),
        ({"cores": 2, "wanted": 3}, 3),
        ({"cores": 2, "wanted": 1}, 1),
    ],
)
def test_as_many_as_are_asked_for_or_worth_their_while(
    options: dict[str, Any], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert processes(**options, monkeypatch=monkeypatch) == expected


def test_a_large_model_is_left_to_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.compute.device.MOST_PARAMETERS", 1_000)  # parameters; it has 1,100
    assert processes(monkeypatch=monkeypatch) == 1


def test_workers_that_cannot_be_started_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.compute.device.can_fork", lambda device: False)
    assert processes(monkeypatch=monkeypatch) == 1
    with pytest.raises(SettingsError, match=r"training.processes = 2 needs Linux"):
        processes(2, monkeypatch=monkeypatch)


def test_a_signal_is_not_lost_while_a_worker_is_started() -> None:
    """Python swallows what a handler raises in a callback around a fork."""
    sent: list[int] = []

    def interrupt() -> None:
        if not sent:
            sent.append(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    os.register_at_fork(before=interrupt)  # for good: nothing can be taken out again
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            WorkerProcess(abs)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert sent == [signal.SIGINT]
