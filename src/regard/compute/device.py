"""The device that computes, and what the machine offers: cores, instructions, formats, memory.

The device is chosen once, by `computing_on`; models are put onto it where they are made, and every
other tensor is made where its neighbours are. Nothing else in the program names a device.

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
from contextvars import ContextVar
from copy import copy
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from regard.base.errors import SettingsError
from regard.base.shapes import Tensor
from regard.compute.precision import products_in

HOST = torch.device("cpu")
AUTO = "auto"
ENVIRONMENT = "REGARD_DEVICE"
# The device of the innermost `computing_on`, in each thread; without one, the environment's.
_CHOSEN: ContextVar[torch.device | None] = ContextVar("chosen device", default=None)


def devices_here() -> list[torch.device]:
    """Return the devices of this machine: the processor first, then what torch can use."""
    found = torch.accelerator.current_accelerator(check_available=True)
    if found is None:
        return [HOST]
    count = torch.accelerator.device_count()
    return [HOST, *(torch.device(found.type, number) for number in range(count))]


def find_device(name: str) -> torch.device:
    """Return the device of a name: "auto", "cpu", or one of torch's, as "cuda" or "cuda:1".

    "auto" is the first accelerator, or the processor where there is none. Processes that torchrun
    has started take one accelerator each.
    """
    here = devices_here()
    if name == AUTO:
        return here[min(1 + int(os.environ.get("LOCAL_RANK", "0")), len(here) - 1)]
    for device in here:
        if name in (str(device), device.type):
            return device
    listed = ", ".join(f'"{device}"' for device in here)
    raise SettingsError(
        f'The device "{name}" is not there. Here are {listed}; "{AUTO}" takes the fastest. Choose '
        f"with --device or the variable {ENVIRONMENT}."
    )


def current_device() -> torch.device:
    """Return the device that models are put onto."""
    return _CHOSEN.get() or find_device(os.environ.get(ENVIRONMENT) or AUTO)


@contextmanager
def computing_on(name: str | torch.device | None) -> Iterator[torch.device]:
    """Put models that are made or loaded inside the block onto a device; None changes nothing.

    >>> with regard.computing_on("cuda:1"):
    ...     regard.compare(["runs/a", "runs/b"])
    """
    before = _CHOSEN.set(current_device() if name is None else find_device(str(name)))
    try:
        yield current_device()
    finally:
        _CHOSEN.reset(before)


class Movable:
    """A plain object made of tensors, which `moved` takes along attribute by attribute."""


AnyModule = TypeVar("AnyModule", bound=nn.Module)
Anything = TypeVar("Anything")


def placed(model: AnyModule) -> AnyModule:
    """Return a model after putting it onto the current device.

    One in double precision stays on the processor if the device has no such numbers.
    """
    device = current_device()
    double = any(parameter.dtype == torch.float64 for parameter in model.parameters())
    return model.to(HOST if double and not has_doubles(device) else device)


def device_of(model: nn.Module) -> torch.device:
    """Return where a model computes."""
    parameter = next(model.parameters(), None)
    return HOST if parameter is None else parameter.device


def moved(value: Anything, device: torch.device) -> Anything:
    """Return a batch, or any other value made of tensors, on a device; what is there stays."""
    found: Any = value
    if isinstance(value, Tensor):
        # Unless it waits to be pinned, memory of the host is copied before this returns.
        found = value if value.device == device else value.to(device, non_blocking=device != HOST)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        new = {name: moved(part, device) for name, part in parts.items()}
        if any(new[name] is not part for name, part in parts.items()):
            found = replace(value, **new)
    elif isinstance(value, tuple):
        new_parts = [moved(part, device) for part in value]
        found = type(value)(*new_parts) if hasattr(value, "_fields") else type(value)(new_parts)
    elif isinstance(value, list):
        found = [moved(part, device) for part in value]
    elif isinstance(value, Movable):
        found = copy(value)
        vars(found).update({name: moved(part, device) for name, part in vars(value).items()})
    elif isinstance(value, dict):
        found = {name: moved(part, device) for name, part in value.items()}
    return found  # type: ignore[no-any-return]


def beside(model: nn.Module, value: Anything) -> Anything:
    """Return a batch, or any other value made of tensors, on the device of a model."""
    return moved(value, device_of(model))


def has_doubles(device: torch.device) -> bool:
    """Return whether a device has numbers of 64 bits."""
    try:
        torch.empty(0, dtype=torch.float64, device=device)
    except (TypeError, RuntimeError):
        return False
    return True


def doubled(tensor: Tensor) -> Tensor:
    """Return numbers in double precision: on their device, or on the processor if it has none."""
    return (tensor if has_doubles(tensor.device) else tensor.to(HOST)).double()


def finest(device: torch.device) -> torch.dtype:
    """Return the type of the most exact numbers that a device has."""
    return torch.float64 if has_doubles(device) else torch.float32


def random_states() -> dict[str, Tensor]:
    """Return the states of the random generators of all devices, by name, to save them."""
    states = {"random": torch.get_rng_state()}
    _, *others = devices_here()
    for device in others:
        states[f"random.{device}"] = _generator_of(device, len(others), "get_rng_state")().cpu()
    return states


def set_random_states(states: Mapping[str, Tensor]) -> None:
    """Give the random generators these states; one that has none here keeps its own."""
    torch.set_rng_state(states["random"])
    _, *others = devices_here()
    for device in others:
        if (state := states.get(f"random.{device}")) is not None:
            _generator_of(device, len(others), "set_rng_state")(state)


def _generator_of(device: torch.device, count: int, method: str) -> Callable[..., Any]:
    """Return a function of torch for the generator of a device; some take no number of a device."""
    function = getattr(torch.get_device_module(device), method)
    return partial(function, device=device) if count > 1 else function


def uses_hand_kernels(tensor: Tensor) -> bool:
    """Return whether a hand-made kernel should compute on this tensor.

    A compiler joins plain formulas better by itself, and on other devices torch's kernels do.
    """
    return on_host(tensor) and not torch.compiler.is_compiling()


def on_host(tensor: Tensor) -> bool:
    """Return whether a tensor is in the memory of the processor."""
    return tensor.device.type == HOST.type


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


def can_fork(device: torch.device) -> bool:
    """Return whether work can go on in copies of this process: no GPU can be used from one."""
    return sys.platform == "linux" and device == HOST


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
    possible = can_fork(current_device()) and not compiled
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


def computing_in(
    precision: str, device: torch.device = HOST
) -> Callable[[], AbstractContextManager[object]]:
    """Return the context in which a model runs; weights and updates keep their precision.

    With "bf16", products are computed in 16 bits, if the processor supports it: by our own kernels
    on a CPU, elsewhere by torch's.
    """
    if precision == "fp32":
        return nullcontext
    if device == HOST and not has_bf16():
        raise SettingsError(
            'training.precision = "bf16" needs a processor with instructions for it (AVX-512 BF16 '
            'or AMX), which this one lacks; use "fp32".'
        )
    if device == HOST:
        return partial(products_in, torch.bfloat16)
    return partial(torch.autocast, device.type, dtype=torch.bfloat16)


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
    return {
        "device": device_of(model).type,
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
