"""The layers of a model and how many parameters each has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from torch import nn


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
