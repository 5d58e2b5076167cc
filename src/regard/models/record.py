"""Listening to a model: what each of its parts returned, whatever kind of model it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from regard.base.shapes import Tensor


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
