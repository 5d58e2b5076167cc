"""Interventions: what one may change inside a model while it computes, and decoding with them.

Each is a function for a probe: it gets every named value of attention and returns the same or
another one. They act at three places, weights, values and context, and on states; nothing else of
a model is touched, and none of its code is repeated. Places, steps and tokens count from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from regard.attention.probe import Change, Probe, Recorder, Site, in_turn
from regard.base.results import Encoded, Output, Step
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.models.translator import Translator


@dataclass(frozen=True)
class Place:
    """Some heads: those of a part, of a layer, or one; None stands for all of them."""

    part: str | None = None
    layer: int | None = None
    head: int | None = None

    def covers(self, site: Site) -> bool:
        """Return whether a layer of a part is meant."""
        return self.part in (None, site.part) and self.layer in (None, site.layer)

    @property
    def heads(self) -> slice:
        """Which heads of a layer are meant."""
        return slice(None) if self.head is None else slice(self.head, self.head + 1)

    def __str__(self) -> str:
        layer = "" if self.layer is None else f" layer {self.layer}"
        head = "" if self.head is None else f", head {self.head}"
        return f"{self.part or 'all attention'}{layer}{head}"


EVERYWHERE, CROSS, GRAPH = Place(), Place("cross"), Place("graph")


@dataclass(frozen=True)
class Off:
    """Heads are off: their context is zero. A layer's attention that is off adds nothing at all."""

    place: Place

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Return zeros in place of what the heads mix."""
        if not self.place.covers(site):
            return value
        if name == "attention" and self.place.head is None:
            return torch.zeros_like(value)
        if name not in ("context", "node_context"):
            return value
        return _with_heads(value, self.place, torch.zeros(()), name)


@dataclass(frozen=True)
class Skip:
    """A whole layer is off: none of its sublayers adds anything to the residual."""

    part: str
    layer: int

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Return zeros in place of what the sublayers add."""
        here = site.layer == self.layer and name in ("attention", "feed_forward")
        part = "decoder" if site.part == "cross" else site.part
        return torch.zeros_like(value) if here and part == self.part else value


@dataclass(frozen=True)
class Mean:
    """The context of heads is the mean that it has over some texts, whatever is read."""

    place: Place
    means: Mapping[tuple[str, int], Float[Tensor, "heads head_dim"]]

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Return the mean in place of what the heads mix."""
        if name != "context" or not self.place.covers(site):
            return value
        mean = self.means[site.part, site.layer][self.place.heads]
        return _with_heads(value, self.place, mean[:, None], name)


@dataclass(frozen=True)
class Force:
    """At one step the weights are these numbers, one for each token that can be attended to."""

    step: int
    weights: tuple[float, ...] | Float[Tensor, "heads source"]
    place: Place = CROSS

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Return the weights with those of the step replaced."""
        row = self.step - site.start
        if name != "weights" or not self.place.covers(site) or not 0 <= row < value.shape[2]:
            return value
        new = torch.as_tensor(self.weights, dtype=value.dtype, device=value.device)[
            ..., : value.shape[3]
        ]
        changed = value.clone()
        changed[:, self.place.heads, row, : new.shape[-1]] = new
        changed[:, self.place.heads, row, new.shape[-1] :] = 0
        return changed


@dataclass(frozen=True)
class Move:
    """At one step the weight on some tokens goes to others, in equal parts."""

    step: int
    taken: tuple[int, ...]
    given: tuple[int, ...]
    place: Place = CROSS

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Return the weights with a part of them moved."""
        row = self.step - site.start
        if name != "weights" or not self.place.covers(site) or not 0 <= row < value.shape[2]:
            return value
        changed = value.clone()
        rows = changed[:, self.place.heads, row]
        moved = rows[..., list(self.taken)].sum(dim=-1, keepdim=True)
        rows[..., list(self.taken)] = 0
        rows[..., list(self.given)] += moved / len(self.given)
        changed[:, self.place.heads, row] = rows
        return changed


@dataclass(frozen=True)
class Hide:
    """Tokens are hidden: they get no weight, and the others share it as if these were not there.

    Where nothing else could be attended to, the weights are zero.
    """

    tokens: tuple[int, ...]
    place: Place = EVERYWHERE

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Return the weights without those of the tokens."""
        if name != "weights" or not self.place.covers(site):
            return value
        columns = _columns(site, value, self.tokens)
        if not columns:
            return value
        changed = value.clone()
        rows = changed[:, self.place.heads]
        rows[..., columns] = 0
        left = rows.sum(dim=-1, keepdim=True)
        changed[:, self.place.heads] = torch.where(left > 0, rows / left, rows)
        return changed


@dataclass(frozen=True)
class Swap:
    """The values of two words change places; a word of several tokens gives the mean of them."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    place: Place = CROSS

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Return the values with those of the words exchanged."""
        if name != "values" or not self.place.covers(site):
            return value
        if max(*self.first, *self.second) >= value.shape[2]:  # not read yet
            return value
        changed = value.clone()
        for places, others in ((self.first, self.second), (self.second, self.first)):
            mean = value[:, self.place.heads, list(others)].mean(dim=2, keepdim=True)
            changed[:, self.place.heads, list(places)] = mean.expand(-1, -1, len(places), -1)
        return changed


@dataclass(frozen=True)
class Patch:
    """The states of some positions are those of another text.

    Without a layer it is the memory, which the decoder attends to; otherwise what this layer reads.
    """

    positions: tuple[int, ...]
    states: Float[Tensor, "positions width"]
    part: str = "encoder"
    layer: int | None = None

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Return the states with some of them replaced."""
        wanted = "memory" if self.layer is None else "features"
        if name != wanted or site.part != self.part or self.layer not in (None, site.layer):
            return value
        changed = value
        for position, state in zip(self.positions, self.states, strict=True):
            row = position - site.start
            if 0 <= row < value.shape[1]:
                changed = changed.clone()
                changed[:, row] = state
        return changed


def _with_heads(value: Tensor, place: Place, new: Tensor, name: str) -> Tensor:
    """Return a value with that of some heads replaced; in graphs heads are the second axis too."""
    changed = value.clone()
    changed[:, place.heads] = new.to(value.dtype)
    return changed


def _columns(site: Site, weights: Tensor, tokens: Sequence[int]) -> list[int]:
    """Return where tokens stand among the keys, of which a window may have dropped the first."""
    first = 0
    if site.part == "decoder":
        first = max(0, site.start + weights.shape[2] - weights.shape[3])
    return [token - first for token in tokens if 0 <= token - first < weights.shape[3]]


class Reading(NamedTuple):
    """The state of a model, and how many tokens it has read."""

    inner: Any
    read: int


class Intervened:
    """A model with interventions, for any search: every call hands them down as a probe."""

    def __init__(self, model: Any, changes: Change | Iterable[Change]):
        self.model = model
        self.probe = Probe(changes if callable(changes) else in_turn(*changes))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Let the model read whole texts."""
        return self.model(*inputs, probe=self.probe, **options)

    def encode(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> Encoded:
        """Read the source sentences."""
        encoded: Encoded = self.model.encode(source, mask, probe=self.probe)
        return encoded

    def start(self, encoded: Any) -> Reading:
        """Return the state before the first token."""
        return Reading(self.model.start(encoded), 0)

    def step(
        self, tokens: Int[Tensor, "batch"], state: Reading, *, with_weights: bool = False
    ) -> Step[Reading]:
        """Read one token a row and return logits over the next one."""
        probe = self.probe.at(start=state.read)
        found = self.model.step(tokens, state.inner, with_weights=with_weights, probe=probe)
        return Step(found.logits, Reading(found.state, state.read + 1), found.weights)

    def read(
        self, tokens: Int[Tensor, "batch time"], state: Reading, *, with_weights: bool = False
    ) -> Step[Reading]:
        """Let a language model read more tokens."""
        probe = self.probe.at(start=state.read)
        found = self.model.read(tokens, state.inner, with_weights=with_weights, probe=probe)
        after = Reading(found.state, state.read + tokens.shape[1])
        return Step(found.logits, after, found.weights)

    def select(self, state: Reading, rows: Int[Tensor, "chosen"]) -> Reading:
        """Return the state of these rows of the batch, in this order."""
        return Reading(self.model.select(state.inner, rows), state.read)


class IntervenedTranslator(Translator[Reading]):
    """A translator with interventions; its layers are those of the model, not copies of them."""

    def __init__(self, model: Translator[Any], changes: Iterable[Change]):
        super().__init__(encoder=model.encoder, decoder=model.decoder, projection=model.projection)
        self.handing_down = Intervened(model, changes)

    def forward(self, *inputs: Any, **options: Any) -> Output:
        """Return the features behind every target position."""
        output: Output = self.handing_down(*inputs, **options)
        return output

    def encode(
        self,
        source: Int[Tensor, "batch source"],
        mask: Bool[Tensor, "batch source"],
        *,
        probe: Probe | None = None,
    ) -> Encoded:
        """Read the source sentences."""
        return self.handing_down.encode(source, mask)

    def start(self, encoded: Encoded) -> Reading:
        """Return the state before the first target token."""
        return self.handing_down.start(encoded)

    def step(
        self,
        tokens: Int[Tensor, "batch"],
        state: Reading,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> Step[Reading]:
        """Read one token a row and return logits over the next one."""
        return self.handing_down.step(tokens, state, with_weights=with_weights)

    def select(self, state: Reading, rows: Int[Tensor, "chosen"]) -> Reading:
        """Return the state of these rows of the batch, in this order."""
        return self.handing_down.select(state, rows)


def mean_contexts(recorders: Iterable[Recorder]) -> dict[tuple[str, int], Tensor]:
    """Return the mean context of every head over all positions of what was recorded."""
    found: dict[tuple[str, int], list[Tensor]] = {}
    for recorder in recorders:
        for (part, layer, name), values in recorder.values.items():
            if name == "context":  # [batch, heads, time, head_dim], a text at a time
                rows = [value.transpose(1, 2).flatten(0, 1) for value in values]
                found.setdefault((part, layer), []).extend(rows)
    return {where: torch.cat(rows).mean(dim=0) for where, rows in found.items()}
