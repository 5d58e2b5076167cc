from __future__ import annotations

import torch
from torch import nn

from regard.compute.device import differences, numerics


def test_what_digits_depend_on_is_recorded() -> None:
    found = numerics(nn.Linear(2, 2), processes=3)
    assert found["device"] == "cpu"
    assert found["processes"] == 3
    assert found["threads"] == torch.get_num_threads()
    assert found["torch"] == torch.__version__
    assert found["instructions"] == torch.backends.cpu.get_cpu_capability()
    assert numerics(nn.Linear(2, 2, device="meta"))["device"] == "meta"


def test_differences_name_both_values() -> None:
    now = {"device": "cpu", "threads": 2}
    assert differences({"device": "cuda", "threads": 2}, now) == "device = cpu (before: cuda)"
    assert differences(now, now) == ""


def test_what_was_not_recorded_counts_as_the_same() -> None:
    now: dict[str, str | int] = {"threads": 2}
    for before in ({}, None, "damaged"):
        assert differences(before, now) == ""
