"""What this processor can do that libraries do not ask of it by themselves."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch

PROCESSORS = Path("/proc/cpuinfo")


@cache
def has_idle_avx512() -> bool:
    """Return whether there are registers of 512 bits that MKL and CTranslate2 leave alone.

    MKL uses them on Intel's processors only, CTranslate2's own kernels nowhere unless told to. What
    it brings was measured on one of AMD's; Intel's stay as they are.
    """
    return torch.backends.cpu.get_cpu_capability() == "AVX512" and not _is_intel()


def _is_intel() -> bool:
    try:
        described = PROCESSORS.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        described = platform.processor()
    return "GenuineIntel" in described
