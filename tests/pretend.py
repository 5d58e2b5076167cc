"""A pretend accelerator: its numbers are computed on the CPU, but it behaves as a GPU does.

`install()` registers it with torch, which then knows a device "pretend". A tensor on it

- does not mix with tensors on the CPU (numbers without dimensions may, as on CUDA);
- has no numpy array, and no 64-bit floating point, as on Apple's GPUs;
- draws random numbers from a generator of its own, which programs have to save and restore.

`watching()` counts where the program waits for the device, and where it sends something to it. The
registration lasts as long as the process, so tests install the device in a process of their own.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretend"
aten = torch.ops.aten


class PretendTensor(torch.Tensor):
    """A tensor that says it is elsewhere; `raw` holds its numbers."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> PretendTensor:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            raw.size(),
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=torch.device(NAME, 0),
        )
        made.raw = raw
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"Pretend({self.raw})"

    def new_tensor(self, data: Any, *, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.tensor(data, dtype=dtype or self.dtype).to(self.device)

    def __getitem__(self, index: Any) -> torch.Tensor:
        return super().__getitem__(_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_index(index), value)

    def data_ptr(self) -> int:
        return self.raw.data_ptr()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("a tensor of the device must not be sent to another process")


def _index(index: Any) -> Any:
    """Return an index whose lists of numbers are tensors on the device, as torch makes them."""
    if isinstance(index, tuple):
        return tuple(_index(one) for one in index)
    if isinstance(index, list | range):
        return torch.tensor(list(index)).to(NAME)
    return index


class Watched:
    """Where the program waited for the device, and sent something to it: (line, operation)."""

    def __init__(self) -> None:
        self.waits: Counter[tuple[str, str]] = Counter()
        self.sent: Counter[tuple[str, str]] = Counter()

    def listed(self) -> str:
        """Return the waits, the most frequent first."""
        return "\n".join(f"{n:6d}  {line}  {op}" for (line, op), n in self.waits.most_common())


_watching: list[Watched] = []
_random: list[torch.Tensor] = []

MOVES = {aten.copy_.default, aten._to_copy.default}
# These read numbers on the host before they go on.
WAITS = {
    aten._local_scalar_dense.default,
    aten.equal.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.unique_consecutive.default,
    aten.repeat_interleave.Tensor,
    aten.bincount.default,
}
INDEXING = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}


def compute(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation on what the tensors hold, after checking what a GPU would refuse."""
    flat, _ = tree_flatten((args, kwargs))
    mine = [one for one in flat if isinstance(one, PretendTensor)]
    name = str(func)
    if "_pack_padded_sequence" in name or "_pad_packed_sequence" in name:
        return _packed(func, args, kwargs, name)
    wanted = kwargs.get("device")
    here = wanted is not None and torch.device(wanted).type == NAME
    to_host = wanted is not None and not here
    if mine and func not in MOVES:
        for one in flat:
            if isinstance(one, torch.Tensor) and not isinstance(one, PretendTensor) and one.dim():
                raise RuntimeError(f"{func}: tensors on {NAME} and on the CPU ({_line()})")
    generator = kwargs.get("generator")
    if generator is not None and (here or mine):
        raise RuntimeError(f"{func}: a generator of the CPU on {NAME} ({_line()})")
    _watch(func, args, mine, here=here, to_host=to_host)
    plain_args, plain = tree_map(_raw, (args, kwargs))
    if wanted is not None:
        plain["device"] = torch.device("cpu")
    plain.pop("pin_memory", None)
    run = INSTEAD.get(func, func)
    if torch.Tag.nondeterministic_seeded in func.tags and generator is None:
        with _own_random():
            found = run(*plain_args, **plain)
    else:
        found = run(*plain_args, **plain)
    if func is aten._local_scalar_dense.default or (to_host and func is aten._to_copy.default):
        return found
    if func is aten.copy_.default and not isinstance(args[0], PretendTensor):
        return args[0]
    return tree_map(lambda one: _wrapped(one, mine, func), found)


def _raw(value: Any) -> Any:
    return value.raw if isinstance(value, PretendTensor) else value


def _wrapped(value: Any, mine: list[PretendTensor], func: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    for one in mine:
        if one.raw is value:
            return one
    if value.dtype in (torch.float64, torch.complex128):
        raise TypeError(f"{func}: {NAME} has no {value.dtype} ({_line()})")
    return PretendTensor(value)


def _packed(func: Any, args: Any, kwargs: Any, name: str) -> Any:
    """Packed sequences keep their lengths on the CPU, on every device."""
    found = func(*tree_map(_raw, args), **tree_map(_raw, kwargs))
    if not any(isinstance(one, PretendTensor) for one in tree_flatten((args, kwargs))[0]):
        return found
    if isinstance(found, tuple):
        return PretendTensor(found[0]), found[1]
    return PretendTensor(found)


def _gru_cell(
    of_input: torch.Tensor,
    of_state: torch.Tensor,
    h: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    state_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """torch's fused step of a GRU, which it has on accelerators alone."""
    of_input = of_input if input_bias is None else of_input + input_bias
    of_state = of_state if state_bias is None else of_state + state_bias
    (ri, zi, ni), (rh, zh, nh) = of_input.chunk(3, 1), of_state.chunk(3, 1)
    r, z = torch.sigmoid(ri + rh), torch.sigmoid(zi + zh)
    n = torch.tanh(ni + r * nh)
    return n + z * (h - n), torch.cat([r, z, n, h, nh], dim=1)


def _gru_cell_back(gradient: torch.Tensor, kept: torch.Tensor, has_bias: bool) -> Any:
    r, z, n, h, nh = kept.chunk(5, 1)
    by_n = gradient * (1 - z) * (1 - n * n)
    by_z = gradient * (h - n) * z * (1 - z)
    by_r = by_n * nh * r * (1 - r)
    by_input, by_state = torch.cat([by_r, by_z, by_n], 1), torch.cat([by_r, by_z, by_n * r], 1)
    biases = (by_input.sum(0), by_state.sum(0)) if has_bias else (None, None)
    return by_input, by_state, gradient * z, *biases


def _lstm_cell(
    of_input: torch.Tensor,
    of_state: torch.Tensor,
    c: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    state_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """torch's fused step of an LSTM, which it has on accelerators alone."""
    gates = of_input + of_state
    for bias in (input_bias, state_bias):
        gates = gates if bias is None else gates + bias
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    after = f * c + i * g
    return o * after.tanh(), after, torch.cat([i, f, g, o], dim=1)


def _lstm_cell_back(
    by_h: torch.Tensor | None,
    by_c: torch.Tensor | None,
    c: torch.Tensor,
    after: torch.Tensor,
    kept: torch.Tensor,
    has_bias: bool,
) -> Any:
    i, f, g, o = kept.chunk(4, 1)
    visible = after.tanh()
    by_h = torch.zeros_like(after) if by_h is None else by_h
    of_c = by_h * o * (1 - visible * visible) + (0 if by_c is None else by_c)
    by_gates = torch.cat(
        [of_c * g * i * (1 - i), of_c * c * f * (1 - f), of_c * i * (1 - g * g),
         by_h * visible * o * (1 - o)], dim=1,
    )  # fmt: skip
    return by_gates, of_c * f, by_gates.sum(0) if has_bias else None


INSTEAD = {
    aten._thnn_fused_gru_cell.default: _gru_cell,
    aten._thnn_fused_gru_cell_backward.default: _gru_cell_back,
    aten._thnn_fused_lstm_cell.default: _lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_cell_back,
}


def _watch(func: Any, args: Any, mine: list[PretendTensor], *, here: bool, to_host: bool) -> None:
    if not _watching:
        return
    waits = bool(mine) and (func in WAITS or (func is aten._to_copy.default and to_host))
    if func is aten.copy_.default:
        source, target = isinstance(args[1], PretendTensor), isinstance(args[0], PretendTensor)
        waits = source and not target
        here = target and not source and args[1].dim() > 0
    elif func is aten._to_copy.default:
        here = here and not mine
    else:
        here = False
    if func in INDEXING and mine:
        places = [one for one in args[1] if isinstance(one, torch.Tensor)]
        masks = any(one.dtype == torch.bool for one in places)
        # One value at the places of one mask is filled in without looking.
        filled = len(places) == 1 and len(args) > 2 and args[2].numel() == 1
        waits = waits or (masks and not filled)
    for watched in _watching:
        if waits:
            watched.waits[_line(), str(func)] += 1
        if here:
            watched.sent[_line(), str(func)] += 1


def _line() -> str:
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if "/src/regard/" in file and "/jaxtyping/" not in file:
            return f"{file.split('/src/regard/')[1]}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


@contextmanager
def _own_random() -> Iterator[None]:
    """Let the block draw from the generator of the device."""
    of_cpu = torch.random.default_generator.get_state()
    torch.random.default_generator.set_state(_random[0])
    try:
        yield
    finally:
        _random[0] = torch.random.default_generator.get_state()
        torch.random.default_generator.set_state(of_cpu)


class _Module:
    """What `torch.pretend` offers: as much as programs need that do not know which device it is."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        _random[:] = [torch.Generator().manual_seed(seed).get_state()]

    def device_count(self) -> int:
        return 1

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return _random[0].clone()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        _random[:] = [state.clone()]

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def synchronize(self, device: Any = None) -> None:
        return


GROWING = (
    *("arange", "arange.start", "arange.start_step"),
    *("eye", "eye.m", "linspace", "randperm", "tril_indices", "triu_indices"),
)


def _making(func: Any) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        return compute(func, args, kwargs)

    return make


def _by_moving(original: Any) -> Any:
    """Return a function that makes a tensor from data: on the CPU first, and moves it."""

    @wraps(original)
    def make(data: Any, *, device: Any = None, requires_grad: bool = False, **options: Any) -> Any:
        device = torch.empty(0).device if device is None else torch.device(device)
        with torch._C.DisableTorchFunction():
            found = original(data, **options)
        if device.type == NAME:
            found = found.to(device)
        return found.requires_grad_() if requires_grad else found

    return make


def install() -> str:
    """Register the device with torch, once in a process, and return its name.

    It must be called before a program is imported: tensors like these have no inference mode, in
    the place of which there is none but that without gradients.
    """
    if _random:
        return NAME
    module = _Module()
    module.manual_seed_all(0)
    _setup_privateuseone_for_python_backend(NAME, backend_module=module)
    # What makes a new tensor on the device has no tensor that says how.
    library = torch.library.Library("_", "IMPL")
    library.fallback(lambda func, *args, **kwargs: compute(func, args, kwargs), "PrivateUse1")
    # What makes a tensor by letting an empty one grow, which one that wraps another cannot.
    made = torch.library.Library("aten", "IMPL")
    for name in GROWING:
        packet, _, overload = name.partition(".")
        made.impl(
            name, _making(getattr(getattr(aten, packet), overload or "default")), "PrivateUse1"
        )
    globals()["_libraries"] = (library, made)  # as long as the process lives
    for maker in ("tensor", "as_tensor"):
        setattr(torch, maker, _by_moving(getattr(torch, maker)))
    torch.inference_mode = torch.no_grad  # type: ignore[assignment,misc]
    # Parameters stay the same objects when they move, as they do on other devices.
    torch.__future__.set_swap_module_params_on_conversion(True)
    return NAME


@contextmanager
def watching() -> Iterator[Watched]:
    """Count where the program waits for the device inside the block."""
    watched = Watched()
    _watching.append(watched)
    try:
        yield watched
    finally:
        _watching.remove(watched)
