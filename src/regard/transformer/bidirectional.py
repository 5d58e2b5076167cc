"""A stack of Transformer layers in which every position sees all others: BERT's network."""

from collections.abc import Sequence

import torch
from torch import nn

from regard.attention.masks import Visibility
from regard.attention.positions import DistanceBias
from regard.attention.probe import Probe, seen
from regard.base.results import Output
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.linear import Linear
from regard.transformer.layers import ACTIVATIONS, Embedded, SelfAttentionLayer


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
        """Read whole texts; where the mask is False there is padding, which nobody sees."""
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
        return seen(probe, "output", features), found


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
