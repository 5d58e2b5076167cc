"""The Transformer's encoder: layers in which all source positions look at each other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from regard.attention.sight import Sight
from regard.base.results import Encoded
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.transformer.embedded import Embedded
from regard.transformer.layer import SelfAttentionLayer
from regard.transformer.recompute import recomputed


class TransformerEncoder(nn.Module):
    """Reads all source positions at once (Vaswani et al. 2017, section 3.1)."""

    def __init__(
        self,
        *,
        embedded: Embedded,
        layers: Sequence[SelfAttentionLayer],
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
            features, _, weights = run(features, sight, with_weights=with_weights)
            found += [] if weights is None else [weights]
        if self.norm is not None:
            features = self.norm(features)
        return Encoded(memory=features, mask=mask), found
