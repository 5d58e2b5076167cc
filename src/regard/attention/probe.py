"""Probes: how a caller sees, and may change, what attention computes on its way.

    queries, keys -> scores -> weights -> context (with values) -> output

A probe is passed down with a call, as any other argument; nothing is left behind in a module. Where
none is given, nothing but the question whether there is one is added to a step. Attention then
computes step by step, for the fused kernels never hold what a probe wants to see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from regard.base.shapes import Tensor


@dataclass(frozen=True)
class Site:
    """Where a value arises: which part of a model, which layer, and from which position on.

    The parts are "encoder" and "decoder" for self-attention, "cross" for attention from target to
    source, and "pooling" and "graph" where those are. Layers and positions count from 0.
    """

    part: str = "cross"
    layer: int = 0
    start: int = 0
    """The position of the first query, if whoever calls step by step tells it."""


# These are [batch, heads, time, head_dim], scores and weights [batch, heads, target, source]; all
# others [batch, time, width].
OF_HEADS = ("queries", "keys", "values", "scores", "masked", "weights", "context")
# Gets a place, the name of a value and the value; returns the same or another one in its place.
Change: TypeAlias = Callable[[Site, str, Tensor], Tensor]


@dataclass(frozen=True)
class Probe:
    """A function on its way to where attention happens, with the place that it has reached."""

    change: Change
    site: Site = Site()
    attention: bool = True
    """Whether it is for what attention computes; otherwise attention keeps its fast kernels."""

    @property
    def of_attention(self) -> Probe | None:
        """Return the probe as attention gets it: None if it is for other parts."""
        return self if self.attention else None

    def at(self, *, part: str | None = None, layer: int | None = None, start: int = 0) -> Probe:
        """Return the probe for another place; `start` is counted from where the probe is."""
        there = replace(
            self.site,
            part=self.site.part if part is None else part,
            layer=self.site.layer if layer is None else layer,
            start=self.site.start + start,
        )
        return replace(self, site=there)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Return what takes the place of this value; a single head gets its axis on the way."""
        if name in OF_HEADS and value.dim() == 3:
            return self.change(self.site, name, value[:, None])[:, 0]
        return self.change(self.site, name, value)


def seen(probe: Probe | None, name: str, value: Tensor) -> Tensor:
    """Return the value, or what a probe puts in its place."""
    return value if probe is None else probe(name, value)


def in_turn(*changes: Change) -> Change:
    """Return the function that applies these one after the other."""

    def change(site: Site, name: str, value: Tensor) -> Tensor:
        for each in changes:
            value = each(site, name, value)
        return value

    return change


@dataclass
class Recorder:
    """Changes nothing and keeps every value, by place and name, in the order of the calls."""

    values: dict[tuple[str, int, str], list[Tensor]] = field(default_factory=dict)

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Keep a copy of the value."""
        self.values.setdefault((site.part, site.layer, name), []).append(value.detach().clone())
        return value

    def get(self, part: str, layer: int, name: str) -> Tensor:
        """Return the last value of this name at this place."""
        return self.values[part, layer, name][-1]
