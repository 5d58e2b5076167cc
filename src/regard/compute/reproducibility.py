"""What the last digits of a result depend on, besides seed, data and settings.

Sums of floating-point numbers depend on their order, and that on how many threads and processes
share them, on the instructions of the processor and on the library that computes them.
"""

from collections.abc import Mapping

import torch
from torch import nn


def numerics(model: nn.Module, *, processes: int = 1) -> dict[str, str | int]:
    """Return what the digits of a training depend on, to record with its checkpoints."""
    parameter = next(model.parameters(), None)
    return {
        "device": "cpu" if parameter is None else parameter.device.type,
        "processes": processes,
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": str(torch.__version__),
    }


def differences(before: object, now: Mapping[str, str | int]) -> str:
    """Return what has changed since, as "threads = 2 (before: 1)"; empty if nothing has.

    What was not recorded before counts as the same.
    """
    known = before if isinstance(before, dict) else {}
    return ", ".join(
        f"{name} = {value} (before: {str(known[name])[:40]})"
        for name, value in now.items()
        if known.get(name, value) != value
    )
