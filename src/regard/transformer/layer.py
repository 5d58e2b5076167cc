"""The layer that encoders and language models are made of; a sight says who sees whom."""

from __future__ import annotations

from torch import nn

from regard.attention.multihead import MultiHeadAttention, Past
from regard.attention.sight import Sight
from regard.base.shapes import Float, Tensor
from regard.transformer.block import FeedForward, Residual


class SelfAttentionLayer(nn.Module):
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
        features: Float[Tensor, "batch target model_dim"],
        sight: Sight,
        *,
        past: Past | None = None,
        start: int = 0,
        with_weights: bool = False,
    ) -> tuple[
        Float[Tensor, "batch target model_dim"],
        Past,
        Float[Tensor, "batch heads target source"] | None,
    ]:
        """Read positions that follow those in `past`; return features, past and weights."""
        (change, weights), after = self.attention(
            self.around_attention.enter(features),
            sight,
            past=past,
            start=start,
            with_weights=with_weights,
        )
        features = self.around_attention.leave(features, change)
        change = self.feed_forward(self.around_feed_forward.enter(features))
        return self.around_feed_forward.leave(features, change), after, weights
