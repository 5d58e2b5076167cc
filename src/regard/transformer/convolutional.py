"""A convolutional encoder with the interface of the Transformer's, for comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch.nn.functional as F
from torch import nn

from regard.attention.dropout import Dropout
from regard.base.results import Encoded
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.transformer.embedded import Embedded


class ConvolutionalLayer(nn.Module):
    """x + glu(conv(x)), scaled to keep the variance (Gehring et al. 2017, section 3.2)."""

    def __init__(self, model_dim: int, *, width: int, dropout: float = 0.0):
        super().__init__()
        if width % 2 == 0:
            raise ValueError(f"width ({width}) must be odd, so that it has a middle")
        self.convolution = nn.Conv1d(model_dim, 2 * model_dim, width, padding=width // 2)
        self.dropout = Dropout(dropout)
        nn.init.normal_(
            self.convolution.weight, std=math.sqrt(4 * (1 - dropout) / (width * model_dim))
        )
        if self.convolution.bias is not None:
            nn.init.zeros_(self.convolution.bias)

    def forward(
        self,
        features: Float[Tensor, "batch source model_dim"],
        mask: Bool[Tensor, "batch source"],
    ) -> Float[Tensor, "batch source model_dim"]:
        """Return the features after this layer; padding is seen as zeros, like the outside."""
        inputs = self.dropout(features) * mask[:, :, None]
        change = F.glu(self.convolution(inputs.transpose(1, 2)), dim=1).transpose(1, 2)
        joined: Tensor = (features + change) * math.sqrt(0.5)
        return joined


class ConvolutionalEncoder(nn.Module):
    """Layers that each see `width` neighbouring positions (Gehring et al. 2017)."""

    def __init__(self, *, embedded: Embedded, layers: Sequence[ConvolutionalLayer]):
        super().__init__()
        self.embedded = embedded
        self.layers = nn.ModuleList(layers)

    def forward(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> Encoded:
        """Return the features of every source position."""
        features = self.embedded(source)
        for layer in self.layers:
            features = layer(features, mask)
        return Encoded(memory=features, mask=mask)
