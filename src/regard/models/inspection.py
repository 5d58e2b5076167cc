"""Looking into a model: its layers and their sizes, and what each part returned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import nn

from regard.base.shapes import Tensor


@dataclass(frozen=True)
class LayerRow:
    """One row of the summary: a part of the model that owns parameters.

    What comes out of it and what feeds it are empty where the model does not tell.
    """

    name: str
    kind: str
    shape: str
    parameters: int
    output_shape: str = ""
    connected_to: str = ""


class Wire(NamedTuple):
    """A layer's place in the whole: the part's name, its output and the layer that feeds it."""

    part: str
    output_shape: str
    connected_to: str


@runtime_checkable
class Wired(Protocol):
    """A model that can tell how its layers are connected."""

    def wiring(self) -> list[Wire]:
        """Return the layers in the order in which data passes them."""
        ...


def layer_table(model: nn.Module) -> list[LayerRow]:
    """Return every part that owns parameters; one shared between two parts counts once."""
    seen: set[int] = set()
    if isinstance(model, Wired):
        return [
            _row(wire.part, model.get_submodule(wire.part), seen, recurse=True, wire=wire)
            for wire in model.wiring()
        ]
    rows = [_row(name, part, seen, recurse=False) for name, part in model.named_modules()]
    return [row for row in rows if row.parameters]


def parameter_count(model: nn.Module) -> int:
    """Return how many numbers the model has learned or will learn."""
    return sum(p.numel() for p in model.parameters())


def _row(
    name: str, part: nn.Module, seen: set[int], *, recurse: bool, wire: Wire | None = None
) -> LayerRow:
    """Return the row of one part, counting only the parameters that no row has had."""
    own = [p for p in part.parameters(recurse=recurse) if id(p) not in seen]
    seen.update(id(p) for p in own)
    return LayerRow(
        name=name,
        kind=type(part).__name__,
        shape=", ".join("x".join(str(size) for size in p.shape) for p in own),
        parameters=sum(p.numel() for p in own),
        output_shape=wire.output_shape if wire else "",
        connected_to=wire.connected_to if wire else "",
    )


@contextmanager
def recorded(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Yield a dictionary that fills with the outputs of every part, one tensor a call.

    A part that returns several tensors has one entry for each, as `decoder.lookup.weights`.
    """
    heard: dict[str, list[Tensor]] = {}
    handles = [
        part.register_forward_hook(partial(_hear, heard, name))
        for name, part in model.named_modules()
        if name
    ]
    try:
        yield heard
    finally:
        for handle in handles:
            handle.remove()


def join_calls(calls: list[Tensor]) -> list[Tensor]:
    """Return what a part gave in all its calls: steps of a sequence side by side, others apart."""
    joined: list[Tensor] = []
    for shape in dict.fromkeys(call.shape for call in calls):
        alike = [call for call in calls if call.shape == shape]
        steps = len(shape) >= 3 and shape[1] == 1
        joined += [torch.cat(alike, dim=1)] if steps else alike
    return joined


def _hear(
    heard: dict[str, list[Tensor]], name: str, part: nn.Module, inputs: Any, output: Any
) -> None:
    for path, tensor in _tensors(output, name):
        calls = heard.setdefault(path, [])
        # What is only handed on from step to step, such as a memory, is one value.
        if not any(call.data_ptr() == tensor.data_ptr() for call in calls[-1:]):
            calls.append(tensor.detach())


def _tensors(value: Any, path: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the floating-point tensors inside a value, with the path that leads to each."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield path, value
    elif is_dataclass(value):
        for field in fields(value):
            yield from _tensors(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple | list):
        names = getattr(value, "_fields", range(len(value)))
        for key, item in zip(names, value, strict=True):
            yield from _tensors(item, f"{path}.{key}")
