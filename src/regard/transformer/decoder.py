"""The Transformer's decoder: masked self-attention (or SSRU), cross-attention, feed-forward.

All that a next step needs is in the state: the keys and values of every layer, for the target read
so far and for the source. Many tokens at once or one at a time give the same features.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch
from torch import nn

from regard.attention.experts import MixtureOfExperts
from regard.attention.masks import Visibility, memory_penalties
from regard.attention.multihead import MultiHeadAttention
from regard.attention.past import KeysValues, owners_of
from regard.attention.places import DistanceBias
from regard.attention.probe import Probe
from regard.base.results import Attended, Encoded, Output
from regard.base.shapes import Float, Int, Tensor
from regard.transformer import layers as parts
from regard.transformer.past import LayerPast, StackPast


def cross_attend(
    attention: MultiHeadAttention,
    inputs: Float[Tensor, "rows target model_dim"],
    memory: KeysValues,
    penalties: Float[Tensor, "sentences 1 1 source"] | None,
    *,
    with_weights: bool = False,
    probe: Probe | None = None,
) -> Attended:
    """Let rows attend to the memory of their sentence; to a probe each row shows its own."""
    rows, target, _ = inputs.shape
    sentences = memory.keys.shape[0]
    if probe is not None and rows != sentences:
        owners = torch.arange(rows, device=inputs.device) // (rows // sentences)
        memory = memory.of(owners)
        penalties = None if penalties is None else penalties.index_select(0, owners)
        sentences = rows
    if rows == sentences:
        return attention.cross(inputs, memory, penalties, with_weights=with_weights, probe=probe)
    together = inputs.reshape(sentences, rows // sentences * target, -1)
    context, weights = attention.cross(together, memory, penalties, with_weights=with_weights)
    if weights is not None:
        heads, source = weights.shape[1], weights.shape[3]
        weights = weights.view(sentences, heads, -1, target, source).transpose(1, 2).flatten(0, 1)
    return Attended(context.reshape(inputs.shape), weights)


class TransformerDecoderState(NamedTuple):
    """Everything that the next step needs."""

    past: StackPast
    memory: tuple[KeysValues, ...]
    penalties: Float[Tensor, "batch 1 1 source"] | None
    width: int = 1
    """How many rows there are for each sentence of the memory."""


class LayerOutput(NamedTuple):
    """What one layer returns; the weights only on request."""

    features: Float[Tensor, "batch target model_dim"]
    past: LayerPast
    self_weights: Float[Tensor, "batch heads target target"] | None
    cross_weights: Float[Tensor, "batch heads target source"] | None


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention and a feed-forward network (Vaswani et al. 2017, 3.1)."""

    def __init__(
        self,
        *,
        self_attention: MultiHeadAttention | parts.RecurrentUnit,
        self_residual: parts.Residual,
        cross_attention: MultiHeadAttention,
        cross_residual: parts.Residual,
        feed_forward: parts.FeedForward | MixtureOfExperts,
        feed_forward_residual: parts.Residual,
    ):
        super().__init__()
        self.self_attention = self_attention
        self.self_residual = self_residual
        self.cross_attention = cross_attention
        self.cross_residual = cross_residual
        self.feed_forward = feed_forward
        self.feed_forward_residual = feed_forward_residual

    @property
    def shares_past(self) -> bool:
        """Return whether rows can read on along the paths of a tree."""
        attention = self.self_attention
        return isinstance(attention, MultiHeadAttention) and attention.shares_past

    def forward(
        self,
        features: Float[Tensor, "batch target model_dim"],
        visibility: Visibility,
        memory: KeysValues,
        penalties: Float[Tensor, "sentences 1 1 source"] | None,
        *,
        past: LayerPast | None,
        start: int,
        weights_of: Collection[str] = (),
        probe: Probe | None = None,
    ) -> LayerOutput:
        """Read positions that follow those in `past`; `weights_of` names "self" or "cross"."""
        probe = None if probe is None else probe.at(part="decoder")
        if probe is not None:
            features = probe("features", features)
        inputs = self.self_residual.enter(features)
        self_weights = None
        after: LayerPast
        if isinstance(self.self_attention, parts.RecurrentUnit):
            change, after = self.self_attention(inputs, past)
        else:
            (change, self_weights), after = self.self_attention(
                inputs,
                visibility,
                past=past,
                start=start,
                with_weights="self" in weights_of,
                probe=None if probe is None else probe.of_attention,
            )
        features = self.self_residual.leave(features, change, probe=probe, name="attention")
        if probe is not None:
            features = probe("attended", features)
        across = None if probe is None else probe.at(part="cross")
        change, cross_weights = cross_attend(
            self.cross_attention,
            self.cross_residual.enter(features),
            memory,
            penalties,
            with_weights="cross" in weights_of,
            probe=None if across is None else across.of_attention,
        )
        features = self.cross_residual.leave(features, change, probe=across, name="attention")
        if across is not None:
            features = across("attended", features)
        change = parts.feed_forward_change(
            self.feed_forward, self.feed_forward_residual.enter(features), probe=probe
        )
        features = self.feed_forward_residual.leave(
            features, change, probe=probe, name="feed_forward"
        )
        return LayerOutput(features, after, self_weights, cross_weights)


class TransformerDecoder(nn.Module):
    """Predicts each target token from those before it and the source (Vaswani et al. 2017, 3.1).

    `alignment_layer` is the one whose heads, averaged, are shown as the decoder's attention, or
    one of them (Garg et al. 2019). That head is taught where the token was read stands in the
    source, so its rows are one step later than what they align.
    """

    def __init__(
        self,
        *,
        embedded: parts.Embedded,
        layers: Sequence[DecoderLayer],
        norm: nn.Module | None,
        window: int | None = None,
        distance_bias: DistanceBias | None = None,
        alignment_layer: int = -1,
        alignment_head: int | None = None,
        output_scale: float = 1.0,
    ):
        """`output_scale` multiplies the features, as T5 does where one table is shared by all."""
        super().__init__()
        self.embedded = embedded
        self.output_scale = output_scale
        self.layers = nn.ModuleList(layers)
        self.norm = norm
        self.window = window
        self.recompute = False
        self.alignment_layer = alignment_layer % len(layers)
        self.alignment_head = alignment_head
        self.distance_bias = distance_bias

    @property
    def longest(self) -> int | None:
        """Return how many tokens can be read at most, if the positions are a table with an end."""
        positions = self.embedded.positions
        return None if positions is None else positions.max_length

    def start(self, encoded: Encoded) -> TransformerDecoderState:
        """Project the source once for every layer."""
        return TransformerDecoderState(
            past=StackPast(),
            memory=tuple(layer.cross_attention.memory(encoded.memory) for layer in self._layers()),
            penalties=memory_penalties(encoded.mask, dtype=encoded.memory.dtype),
        )

    def forward(
        self,
        tokens: Int[Tensor, "batch target"],
        state: TransformerDecoderState,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> tuple[Output, TransformerDecoderState]:
        """Read target tokens, one or many at once; return the features that predict the next."""
        wanted = {self.alignment_layer} if with_weights else set()
        features, outputs, past = self._read(tokens, state, with_cross=wanted, probe=probe)
        weights = outputs[self.alignment_layer].cross_weights
        attention = None
        if weights is not None:
            head = self.alignment_head
            attention = weights.mean(dim=1) if head is None else weights[:, head]
        return Output(features, attention), state._replace(past=past)

    def look(
        self, tokens: Int[Tensor, "batch target"], encoded: Encoded
    ) -> tuple[
        Float[Tensor, "layers batch heads target target"] | None,
        Float[Tensor, "layers batch heads target source"],
    ]:
        """Return the weights of every layer and head: self-attention (none in SSRU) and cross."""
        every = set(range(len(self.layers)))
        _, outputs, _ = self._read(tokens, self.start(encoded), with_cross=every, with_self=True)
        among = [output.self_weights for output in outputs if output.self_weights is not None]
        cross = [output.cross_weights for output in outputs if output.cross_weights is not None]
        return (torch.stack(among) if among else None), torch.stack(cross)

    def select(
        self, state: TransformerDecoderState, rows: Int[Tensor, "chosen"]
    ) -> TransformerDecoderState:
        """Return the state of these rows of the batch, in this order."""
        sentences, width = owners_of(
            rows, width=state.width, sentences=state.memory[0].keys.shape[0]
        )
        memory, penalties = state.memory, state.penalties
        if sentences is not None:
            memory = tuple(part.of(sentences) for part in memory)
            penalties = None if penalties is None else penalties.index_select(0, sentences)
        return TransformerDecoderState(state.past.of(rows), memory, penalties, width)

    def _read(
        self,
        tokens: Tensor,
        state: TransformerDecoderState,
        *,
        with_cross: set[int],
        with_self: bool = False,
        probe: Probe | None = None,
    ) -> tuple[Tensor, list[LayerOutput], StackPast]:
        inside = None if probe is None else probe.at(part="decoder")
        read = state.past.read
        features = self.embedded(tokens, start=read, probe=inside)
        past = state.past.opened(
            window=self.window,
            along_paths=tokens.shape[1] == 1
            and probe is None
            and not with_self
            and not torch.is_grad_enabled()
            and all(layer.shares_past for layer in self._layers()),
        )
        visibility = past.visibility(features, window=self.window, distance_bias=self.distance_bias)
        outputs = []
        for number, layer in enumerate(self._layers()):
            output = parts.recompute_layer(layer, wanted=self.recompute)(
                features,
                visibility,
                state.memory[number],
                state.penalties,
                past=past.layers[number] if past.layers else None,
                start=read,
                weights_of=(
                    *(("self",) if with_self else ()),
                    *(("cross",) if number in with_cross else ()),
                ),
                probe=None if inside is None else inside.at(layer=number),
            )
            features = output.features
            outputs.append(output)
        if self.norm is not None:
            features = self.norm(features)
        features = features if self.output_scale == 1 else features * self.output_scale
        if inside is not None:
            features = inside("output", features)
        after = past.after(tuple(output.past for output in outputs), count=tokens.shape[1])
        return features, outputs, after

    def _layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]
