"""The layers of a model and how many parameters each has."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class LayerRow:
    """One row of the summary: a part of the model that owns parameters."""

    name: str
    kind: str
    shape: str
    parameters: int


def layer_table(model: nn.Module) -> list[LayerRow]:
    """Return every part that owns parameters; one shared between two parts counts once."""
    rows: list[LayerRow] = []
    seen: set[int] = set()
    for name, part in model.named_modules():
        own = [p for p in part.parameters(recurse=False) if id(p) not in seen]
        seen.update(id(p) for p in own)
        if own:
            shape = ", ".join("x".join(str(size) for size in p.shape) for p in own)
            rows.append(LayerRow(name, type(part).__name__, shape, sum(p.numel() for p in own)))
    return rows


def parameter_count(model: nn.Module) -> int:
    """Return how many numbers training may change."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
