"""A stack of Transformer layers in which every position sees itself and what came before it.

All that a next step needs is in the state: the keys and values of every layer. Many tokens at once
or one at a time give the same features.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from regard.attention.efficient import LinearState
from regard.attention.masks import Segments, Visibility
from regard.attention.multihead import KeysValues, Past
from regard.attention.places import DistanceBias
from regard.attention.probe import Probe
from regard.base.results import Output
from regard.base.shapes import Float, Int, Tensor
from regard.transformer.layers import Embedded, SelfAttentionLayer


class CausalState(NamedTuple):
    """What was read so far; `past` is empty before the first token."""

    past: tuple[Past, ...]
    read: int


class CausalTransformer(nn.Module):
    """Predicts each token from those before it (Liu et al. 2018; Radford et al. 2019).

    With `segments` it reads one after the other and remembers what came before (Dai et al. 2019):
    memory does not grow with the text, and no gradient flows from a segment into an earlier one.
    """

    def __init__(
        self,
        *,
        embedded: Embedded,
        layers: Sequence[SelfAttentionLayer],
        norm: nn.Module | None,
        window: int | None = None,
        distance_bias: DistanceBias | None = None,
        segments: Segments | None = None,
    ):
        super().__init__()
        self.segments = segments
        self.embedded = embedded
        self.layers = nn.ModuleList(layers)
        self.norm = norm
        self.window = window
        self.distance_bias = distance_bias

    def start(self, batch: int) -> CausalState:
        """Return the state before the first token."""
        return CausalState(past=(), read=0)

    def forward(
        self,
        tokens: Int[Tensor, "batch target"],
        state: CausalState,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> tuple[Output, CausalState]:
        """Read tokens, one or many at once; return the features that predict the next ones.

        The attention, if it is asked for, is the mean over the heads of the last layer.
        """
        wanted = {len(self.layers) - 1} if with_weights else set()
        whole = with_weights or (probe is not None and not self.training)
        found = []
        for piece in [tokens] if whole else self._pieces(tokens, read=state.read):
            features, state, weights = self._read(piece, state, wanted=wanted, probe=probe)
            found.append(features)
        features = torch.cat(found, dim=1) if len(found) > 1 else found[0]
        return Output(features, weights[-1].mean(dim=1) if weights else None), state

    def look(
        self, tokens: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "layers batch heads target target"]:
        """Return the weights of every layer and head."""
        every = set(range(len(self.layers)))
        _, _, weights = self._read(tokens, self.start(len(tokens)), wanted=every)
        return torch.stack(weights)

    def select(self, state: CausalState, rows: Int[Tensor, "chosen"]) -> CausalState:
        """Return the state of these rows of the batch, in this order."""
        return state._replace(past=tuple(_rows_of(part, rows) for part in state.past))

    def _pieces(self, tokens: Tensor, *, read: int) -> list[Tensor]:
        """Return the tokens, cut where a segment ends."""
        if self.segments is None:
            return [tokens]
        length = self.segments.length
        first = min(length - read % length, tokens.shape[1])
        later = range(first, tokens.shape[1], length)
        return [tokens[:, :first], *(tokens[:, begin : begin + length] for begin in later)]

    def _read(
        self,
        tokens: Tensor,
        state: CausalState,
        *,
        wanted: set[int],
        probe: Probe | None = None,
    ) -> tuple[Tensor, CausalState, list[Tensor]]:
        probe = None if probe is None else probe.at(part="decoder")
        features = self.embedded(tokens, start=state.read, probe=probe)
        visibility = Visibility.back(
            features,
            read=state.read,
            window=self.window,
            distance_bias=self.distance_bias,
            segments=self.segments,
        )
        past: list[Past] = []
        found: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            features, after, weights = layer(
                features,
                visibility,
                past=state.past[number] if state.past else None,
                start=state.read,
                with_weights=number in wanted,
                probe=None if probe is None else probe.at(layer=number),
            )
            past.append(after)
            found += [] if weights is None else [weights]
        if self.norm is not None:
            features = self.norm(features)
        if probe is not None:
            features = probe("output", features)
        return features, CausalState(tuple(past), state.read + tokens.shape[1]), found


def _rows_of(past: Past, rows: Tensor) -> Past:
    kind = LinearState if isinstance(past, LinearState) else KeysValues
    return kind(*(part.index_select(0, rows) for part in past))
