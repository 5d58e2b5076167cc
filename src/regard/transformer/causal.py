"""A stack of Transformer layers in which every position sees itself and what came before it.

All that a next step needs is in the state: the keys and values of every layer. Many tokens at once
or one at a time give the same features.
"""

from collections.abc import Sequence

import torch
from torch import nn

from regard.attention.masks import Segments
from regard.attention.places import DistanceBias
from regard.attention.probe import Probe
from regard.base.results import Output
from regard.base.shapes import Float, Int, Tensor
from regard.transformer.layers import Embedded, SelfAttentionLayer
from regard.transformer.past import LayerPast, StackPast


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

    def start(self, batch: int) -> StackPast:
        """Return the state before the first token."""
        return StackPast()

    def forward(
        self,
        tokens: Int[Tensor, "batch target"],
        state: StackPast,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> tuple[Output, StackPast]:
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

    def select(self, state: StackPast, rows: Int[Tensor, "chosen"]) -> StackPast:
        """Return the state of these rows of the batch, in this order."""
        return state.of(rows)

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
        state: StackPast,
        *,
        wanted: set[int],
        probe: Probe | None = None,
    ) -> tuple[Tensor, StackPast, list[Tensor]]:
        probe = None if probe is None else probe.at(part="decoder")
        features = self.embedded(tokens, start=state.read, probe=probe)
        past = state.opened(
            window=self.window if self.segments is None else self.segments.kept(state.read),
            along_paths=tokens.shape[1] == 1
            and self.segments is None
            and probe is None
            and not wanted
            and not torch.is_grad_enabled()
            and all(layer.attention.shares_past for layer in self._layers()),
        )
        visibility = past.visibility(
            features,
            window=self.window,
            distance_bias=self.distance_bias,
            segments=self.segments,
        )
        after: list[LayerPast] = []
        found: list[Tensor] = []
        for number, layer in enumerate(self._layers()):
            features, of_layer, weights = layer(
                features,
                visibility,
                past=past.layers[number] if past.layers else None,
                start=state.read,
                with_weights=number in wanted,
                probe=None if probe is None else probe.at(layer=number),
            )
            after.append(of_layer)
            found += [] if weights is None else [weights]
        if self.norm is not None:
            features = self.norm(features)
        if probe is not None:
            features = probe("output", features)
        return features, past.after(tuple(after), count=tokens.shape[1]), found

    def _layers(self) -> list[SelfAttentionLayer]:
        return [layer for layer in self.layers if isinstance(layer, SelfAttentionLayer)]
