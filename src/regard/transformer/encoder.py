"""Encoders of Transformers: of translators, alone (BERT), and with convolutions for comparison."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from regard.attention.masks import Visibility
from regard.attention.places import DistanceBias
from regard.attention.probe import Probe
from regard.base.results import Encoded, Output
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.dropout import Dropout
from regard.compute.linear import Linear
from regard.transformer.layers import ACTIVATIONS, Embedded, SelfAttentionLayer, recompute_layer


class TransformerEncoder(nn.Module):
    """Reads all source positions at once (Vaswani et al. 2017, section 3.1)."""

    def __init__(
        self,
        *,
        embedded: Embedded,
        layers: Sequence[SelfAttentionLayer],
        norm: nn.Module | None,
        window: int | None = None,
        lower_window: int | None = None,
        distance_bias: DistanceBias | None = None,
    ):
        """`lower_window` is that of all layers but the last; none: `window`."""
        super().__init__()
        self.embedded = embedded
        self.layers = nn.ModuleList(layers)
        self.norm = norm
        self.window = window
        self.lower_window = lower_window if lower_window is not None else window
        self.recompute = False
        self.distance_bias = distance_bias

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        mask: Bool[Tensor, "batch source"],
        *,
        probe: Probe | None = None,
    ) -> Encoded:
        """Return the features of every source position."""
        encoded, _ = self._read(source, mask, with_weights=False, probe=probe)
        return encoded

    def look(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> tuple[Encoded, Float[Tensor, "layers batch heads source source"]]:
        """Return the features, and the weights of every layer and head."""
        encoded, weights = self._read(source, mask, with_weights=True)
        return encoded, torch.stack(weights)

    def _read(
        self, source: Tensor, mask: Tensor, *, with_weights: bool, probe: Probe | None = None
    ) -> tuple[Encoded, list[Tensor]]:
        probe = None if probe is None else probe.at(part="encoder")
        features = self.embedded(source, probe=probe)
        last = Visibility(
            target=source.shape[1],
            source=source.shape[1],
            real=mask,
            window=self.window,
            distance_bias=self.distance_bias,
            dtype=features.dtype,
            device=source.device,
        )
        lower = last
        if self.lower_window != self.window:
            lower = replace(last, window=self.lower_window)
        found = []
        for number, layer in enumerate(self.layers):
            run = recompute_layer(layer, wanted=self.recompute)
            features, _, weights = run(
                features,
                last if number == len(self.layers) - 1 else lower,
                with_weights=with_weights,
                probe=None if probe is None else probe.at(layer=number),
            )
            found += [] if weights is None else [weights]
        if self.norm is not None:
            features = self.norm(features)
        if probe is not None:
            features = probe("memory", features)
        return Encoded(memory=features, mask=mask), found


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
        self,
        source: Int[Tensor, "batch source"],
        mask: Bool[Tensor, "batch source"],
        *,
        probe: Probe | None = None,
    ) -> Encoded:
        """Return the features of every source position."""
        probe = None if probe is None else probe.at(part="encoder")
        features = self.embedded(source, probe=probe)
        for layer in self.layers:
            features = layer(features, mask)
        if probe is not None:
            features = probe("memory", features)
        return Encoded(memory=features, mask=mask)


class BidirectionalTransformer(nn.Module):
    """Features of each token in the light of all others (Devlin et al. 2019, section 3)."""

    def __init__(
        self,
        *,
        embedded: Embedded,
        layers: Sequence[SelfAttentionLayer],
        norm: nn.Module | None,
        window: int | None = None,
        distance_bias: DistanceBias | None = None,
    ):
        super().__init__()
        self.embedded = embedded
        self.layers = nn.ModuleList(layers)
        self.norm = norm
        self.window = window
        self.distance_bias = distance_bias

    def start(self, batch: int) -> None:
        """Return nothing: a text is read at once."""

    def forward(
        self,
        tokens: Int[Tensor, "batch time"],
        state: None = None,
        *,
        mask: Bool[Tensor, "batch time"] | None = None,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> tuple[Output, None]:
        """Read whole texts; padding, where the mask is False, gets no attention."""
        features, weights = self._read(tokens, mask, with_weights=with_weights, probe=probe)
        return Output(features, weights[-1].mean(dim=1) if weights else None), None

    def select(self, state: None, rows: Int[Tensor, "chosen"]) -> None:
        """Return nothing: there is no state."""

    def look(
        self, tokens: Int[Tensor, "batch time"]
    ) -> Float[Tensor, "layers batch heads time time"]:
        """Return the weights of every layer and head."""
        return torch.stack(self._read(tokens, None, with_weights=True)[1])

    def _read(
        self,
        tokens: Tensor,
        mask: Tensor | None,
        *,
        with_weights: bool,
        probe: Probe | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        probe = None if probe is None else probe.at(part="encoder")
        features = self.embedded(tokens, probe=probe)
        visibility = Visibility(
            target=tokens.shape[1],
            source=tokens.shape[1],
            real=mask,
            window=self.window,
            distance_bias=self.distance_bias,
            dtype=features.dtype,
            device=tokens.device,
        )
        found = []
        for number, layer in enumerate(self.layers):
            features, _, weights = layer(
                features,
                visibility,
                with_weights=with_weights,
                probe=None if probe is None else probe.at(layer=number),
            )
            found += [] if weights is None else [weights]
        features = features if self.norm is None else self.norm(features)
        if probe is not None:
            features = probe("output", features)
        return features, found


class HiddenTokenLayer(nn.Module):
    """norm(f(W x + b)), between the network and the output layer (Devlin et al. 2019, code)."""

    def __init__(self, model_dim: int, *, activation: str, norm: nn.Module):
        super().__init__()
        self.linear = Linear(model_dim, model_dim)
        self.activation = activation
        self.norm = norm

    def forward(
        self, features: Float[Tensor, "*positions model_dim"]
    ) -> Float[Tensor, "*positions model_dim"]:
        """Return features to predict hidden tokens from."""
        active: Tensor = self.norm(ACTIVATIONS[self.activation](self.linear(features)))
        return active
