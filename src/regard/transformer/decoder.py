"""The Transformer's decoder: masked self-attention (or SSRU), cross-attention, feed-forward.

All that a next step needs is in the state: the keys and values of every layer, for the target read
so far and for the source. Many tokens at once or one at a time give the same features.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch
from torch import nn

from regard.attention.efficient import LinearState
from regard.attention.experts import MixtureOfExperts
from regard.attention.masks import Visibility, memory_penalties
from regard.attention.multihead import KeysValues, MultiHeadAttention
from regard.attention.places import DistanceBias
from regard.attention.probe import Probe
from regard.base.results import Attended, Encoded, Output
from regard.base.shapes import Float, Int, Tensor
from regard.transformer import layers as parts


class Owners(NamedTuple):
    """Which sentences of the memory are still needed, and how many rows each of them has."""

    sentences: Int[Tensor, "kept"] | None
    """None if all are, in the same order."""
    width: int


def owners_of(rows: Int[Tensor, "chosen"], *, width: int, sentences: int) -> Owners:
    """Return whose rows these are, when each sentence had `width` of them.

    Where sentences would not have equally many, each row gets a memory of its own.
    """
    owner = torch.div(rows, width, rounding_mode="floor")
    kept, counts = torch.unique_consecutive(owner, return_counts=True)
    if not len(rows) or int(counts.min()) != int(counts.max()):
        return Owners(owner, 1)
    if len(kept) == sentences and torch.equal(kept, torch.arange(sentences, device=rows.device)):
        return Owners(None, int(counts[0]))
    return Owners(kept, int(counts[0]))


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
        memory = _rows_of_keys(memory, owners)
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


LayerPast = KeysValues | LinearState | Float[Tensor, "batch model_dim"]


class TransformerDecoderState(NamedTuple):
    """Everything that the next step needs; `past` is empty before the first token."""

    past: tuple[LayerPast, ...]
    memory: tuple[KeysValues, ...]
    penalties: Float[Tensor, "batch 1 1 source"] | None
    read: int
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
            past=(),
            memory=tuple(layer.cross_attention.memory(encoded.memory) for layer in self._layers()),
            penalties=memory_penalties(encoded.mask, dtype=encoded.memory.dtype),
            read=0,
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
        features, outputs = self._read(tokens, state, with_cross=wanted, probe=probe)
        weights = outputs[self.alignment_layer].cross_weights
        attention = None
        if weights is not None:
            head = self.alignment_head
            attention = weights.mean(dim=1) if head is None else weights[:, head]
        after = state._replace(
            past=tuple(output.past for output in outputs), read=state.read + tokens.shape[1]
        )
        return Output(features, attention), after

    def look(
        self, tokens: Int[Tensor, "batch target"], encoded: Encoded
    ) -> tuple[
        Float[Tensor, "layers batch heads target target"] | None,
        Float[Tensor, "layers batch heads target source"],
    ]:
        """Return the weights of every layer and head: self-attention (none in SSRU) and cross."""
        every = set(range(len(self.layers)))
        _, outputs = self._read(tokens, self.start(encoded), with_cross=every, with_self=True)
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
            memory = tuple(_rows_of_keys(part, sentences) for part in memory)
            penalties = None if penalties is None else penalties.index_select(0, sentences)
        return TransformerDecoderState(
            past=tuple(_rows_of(part, rows) for part in state.past),
            memory=memory,
            penalties=penalties,
            read=state.read,
            width=width,
        )

    def _read(
        self,
        tokens: Tensor,
        state: TransformerDecoderState,
        *,
        with_cross: set[int],
        with_self: bool = False,
        probe: Probe | None = None,
    ) -> tuple[Tensor, list[LayerOutput]]:
        inside = None if probe is None else probe.at(part="decoder")
        features = self.embedded(tokens, start=state.read, probe=inside)
        visibility = Visibility.back(
            features, read=state.read, window=self.window, distance_bias=self.distance_bias
        )
        outputs = []
        for number, layer in enumerate(self._layers()):
            output = parts.recompute_layer(layer, wanted=self.recompute)(
                features,
                visibility,
                state.memory[number],
                state.penalties,
                past=state.past[number] if state.past else None,
                start=state.read,
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
        return features, outputs

    def _layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]


def _rows_of(past: LayerPast, rows: Tensor) -> KeysValues | LinearState | Tensor:
    if isinstance(past, KeysValues):
        return _rows_of_keys(past, rows)
    if isinstance(past, LinearState):
        return LinearState(*(part.index_select(0, rows) for part in past))
    return past.index_select(0, rows)


def _rows_of_keys(memory: KeysValues, rows: Tensor) -> KeysValues:
    return KeysValues(*(part.index_select(0, rows) for part in memory))
