"""The Transformer's encoder: layers in which all source positions look at each other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from regard.attention.multihead import MultiHeadAttention
from regard.attention.sight import Sight
from regard.base.results import Encoded
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.transformer.block import FeedForward, Residual
from regard.transformer.embedded import Embedded
from regard.transformer.recompute import recomputed


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network, each with a way around it."""

    def __init__(
        self,
        *,
        attention: MultiHeadAttention,
        around_attention: Residual,
        feed_forward: FeedForward,
        around_feed_forward: Residual,
    ):
        super().__init__()
        self.attention = attention
        self.around_attention = around_attention
        self.feed_forward = feed_forward
        self.around_feed_forward = around_feed_forward

    def forward(
        self,
        features: Float[Tensor, "batch source model_dim"],
        sight: Sight,
        *,
        with_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch source model_dim"],
        Float[Tensor, "batch heads source source"] | None,
    ]:
        """Return the features after this layer, and the weights of its heads on request."""
        (change, weights), _ = self.attention(
            self.around_attention.enter(features), sight, with_weights=with_weights
        )
        features = self.around_attention.leave(features, change)
        change = self.feed_forward(self.around_feed_forward.enter(features))
        return self.around_feed_forward.leave(features, change), weights


class TransformerEncoder(nn.Module):
    """Reads all source positions at once (Vaswani et al. 2017, section 3.1)."""

    def __init__(
        self,
        *,
        embedded: Embedded,
        layers: Sequence[EncoderLayer],
        norm: nn.Module | None,
        window: int | None = None,
        slopes: Float[Tensor, "heads"] | None = None,
    ):
        super().__init__()
        self.embedded = embedded
        self.layers = nn.ModuleList(layers)
        self.norm = norm
        self.window = window
        self.recompute = False
        self.slopes: Tensor | None
        self.register_buffer("slopes", slopes, persistent=False)

    def forward(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> Encoded:
        """Return the features of every source position."""
        encoded, _ = self._read(source, mask, with_weights=False)
        return encoded

    def look(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> tuple[Encoded, Float[Tensor, "layers batch heads source source"]]:
        """Return the features, and the weights of every layer and head."""
        encoded, weights = self._read(source, mask, with_weights=True)
        return encoded, torch.stack(weights)

    def _read(
        self, source: Tensor, mask: Tensor, *, with_weights: bool
    ) -> tuple[Encoded, list[Tensor]]:
        features = self.embedded(source)
        sight = Sight(
            target=source.shape[1],
            source=source.shape[1],
            real=mask,
            window=self.window,
            slopes=self.slopes,
            dtype=features.dtype,
            device=source.device,
        )
        found = []
        for layer in self.layers:
            run = recomputed(layer, wanted=self.recompute)
            features, weights = run(features, sight, with_weights=with_weights)
            found += [] if weights is None else [weights]
        if self.norm is not None:
            features = self.norm(features)
        return Encoded(memory=features, mask=mask), found
