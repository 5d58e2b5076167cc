"""What the machine offers, and how much of it is used: cores, instructions, formats, memory.

The last digits of a result depend on it, besides seed, data and settings: sums of floating-point
numbers depend on their order, and that on how many threads and processes share them, on the
instructions of the processor and on the library that computes them.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path

import torch
from torch import nn

from regard.base.errors import SettingsError
from regard.base.shapes import Tensor


def uses_hand_kernels(tensor: Tensor) -> bool:
    """Return whether a hand-made kernel should compute on this tensor.

    A compiler joins plain formulas better by itself, and on other devices torch's kernels do.
    """
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Let torch's operations use `count` threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# A GPU cannot be used from a copy of a process.
CAN_FORK = sys.platform == "linux" and not torch.accelerator.is_available()
# The operations of a larger model are large enough for threads to share.
MOST_PARAMETERS = 20_000_000
# With fewer tokens, a process has too little to do.
FEWEST_TOKENS = 2_000


def processes_for(
    model: nn.Module, *, wanted: int | None, tokens: int, compiled: bool = False
) -> int:
    """Return the number of processes asked for or, if none is, the number that pays.

    `tokens` is the size of a batch.
    """
    possible = CAN_FORK and not compiled
    if wanted is not None and wanted > 1 and not possible:
        raise SettingsError(
            f"training.processes = {wanted} needs Linux, no GPU and no training.compile; "
            "set it to 1 or leave it out."
        )
    if wanted is not None:
        return wanted
    if not possible or sum(parameter.numel() for parameter in model.parameters()) > MOST_PARAMETERS:
        return 1
    return max(1, min(torch.get_num_threads(), tokens // FEWEST_TOKENS))


PROCESSORS = Path("/proc/cpuinfo")


@cache
def has_idle_avx512() -> bool:
    """Return whether there are 512-bit registers that MKL and CTranslate2 do not use.

    MKL uses them on Intel processors only; CTranslate2 uses them nowhere unless it is configured
    to. The gain was measured on an AMD processor; nothing changes on Intel processors.
    """
    return torch.backends.cpu.get_cpu_capability() == "AVX512" and not _is_intel()


def _is_intel() -> bool:
    try:
        described = PROCESSORS.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        described = platform.processor()
    return "GenuineIntel" in described


def computing_in(precision: str) -> Callable[[], AbstractContextManager[object]]:
    """Return the context in which a model runs; weights and updates keep their precision.

    With "bf16", products are computed in 16 bits, if the processor supports it.
    """
    if precision == "fp32":
        return nullcontext
    if not has_bf16():
        raise SettingsError(
            'training.precision = "bf16" needs a processor with instructions for it (AVX-512 BF16 '
            'or AMX), which this one lacks; use "fp32".'
        )
    return partial(torch.autocast, "cpu", dtype=torch.bfloat16)


def has_bf16() -> bool:
    """Return whether this processor computes in bf16 faster than in fp32."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


# The names and numbers of glibc's malloc.h.
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
LARGEST_KEPT = 2**31 - 1
GROWTH = 64 * 2**20


def keep_memory() -> bool:
    """Keep freed memory in this process, for all tensors to come; return whether that was possible.

    Nothing happens where the C library is not glibc.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no mallopt, or no such library at all
        return False
    options = {
        MMAP_MAX: 0,  # large blocks come from the heap too, which is kept
        TRIM_THRESHOLD: LARGEST_KEPT,  # the end of the heap is kept
        TOP_PAD: GROWTH,  # and grows in large steps
    }
    return all(set_option(name, value) == 1 for name, value in options.items())


def return_memory() -> bool:
    """Give freed memory back to the system; return whether that was possible: with glibc alone."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return False
    return bool(trim(0) in (0, 1))


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
