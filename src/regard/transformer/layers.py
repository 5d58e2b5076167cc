"""What Transformers are made of: embedding, residual connection, feed-forward network, layer."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from regard.attention.experts import MixtureOfExperts
from regard.attention.masks import Visibility
from regard.attention.multihead import MultiHeadAttention, Past
from regard.attention.places import AddedPositions
from regard.attention.probe import Probe
from regard.base.errors import SettingsError
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.device import uses_hand_kernels
from regard.compute.dropout import Dropout, rectified_dropout
from regard.compute.linear import Linear


class Embedded(nn.Module):
    """sqrt(d) E x + p (Vaswani et al. 2017, sections 3.4 and 3.5)."""

    def __init__(
        self,
        embedding: nn.Embedding,
        *,
        positions: AddedPositions | None,
        scaled: bool = True,
        norm: nn.Module | None = None,
        segments: int = 0,
        dropout: float = 0.0,
    ):
        """`norm` is that of the sum, which BERT and BART have; BERT has vectors of segments too."""
        super().__init__()
        width = embedding.embedding_dim
        self.segments = nn.Parameter(torch.zeros(segments, width)) if segments else None
        self.embedding = embedding
        self.positions = positions
        self.norm = norm
        self.scale = math.sqrt(embedding.embedding_dim) if scaled else 1.0
        self.dropout = Dropout(dropout)

    def forward(
        self, tokens: Int[Tensor, "batch time"], *, start: int = 0, probe: Probe | None = None
    ) -> Float[Tensor, "batch time model_dim"]:
        """Return the vectors of tokens, the first of which is at position `start`."""
        vectors = self.embedding(tokens)
        if probe is not None:
            vectors = probe("embedding", vectors)
        vectors = vectors * self.scale
        if self.positions is not None:
            vectors = vectors + self.positions(tokens.shape[1], start=start, dtype=vectors.dtype)
        if self.segments is not None:
            vectors = vectors + self.segments[0]  # a text is one segment
        if self.norm is not None:
            vectors = self.norm(vectors)
        dropped: Tensor = self.dropout(vectors)
        return dropped


NORMS: dict[str, Callable[..., nn.Module]] = {
    "layer": nn.LayerNorm,  # Ba et al. 2016
    "rms": nn.RMSNorm,  # Zhang & Sennrich 2019
}
EPSILONS = {"layer": 1e-5, "rms": 1e-6}  # added to the variance, unless settings say otherwise


def norm_of(kind: str, width: int, *, epsilon: float | None = None) -> nn.Module:
    """Return a fresh norm of this kind."""
    return NORMS[kind](width, eps=EPSILONS[kind] if epsilon is None else epsilon)


def _gated(activation: Callable[[Tensor], Tensor], inner: Tensor) -> Tensor:
    """Return f(gate) * value, which take turns (Shazeer 2020)."""
    return activation(inner[..., ::2]) * inner[..., 1::2]


_gelu_tanh = partial(F.gelu, approximate="tanh")  # as GPT-2 has it
# Each takes the inner projection of the feed-forward network; that of the gated is twice as wide.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": _gelu_tanh,
    "swish": F.silu,
    "swiglu": partial(_gated, F.silu),
    "geglu": partial(_gated, F.gelu),
    "geglu-tanh": partial(_gated, _gelu_tanh),  # as T5 has it from version 1.1 on
}
GATED = ("swiglu", "geglu", "geglu-tanh")


class Residual(nn.Module):
    """The residual connection of a sublayer f, with its norm.

    post: norm(x + f(x)) (Vaswani et al. 2017, section 3.1); pre: x + f(norm(x)), which trains deep
    stacks more easily (Xiong et al. 2020).
    """

    def __init__(self, norm: nn.Module, *, pre_norm: bool, dropout: float):
        super().__init__()
        self.norm = norm
        self.pre_norm = pre_norm
        self.dropout = Dropout(dropout)

    def enter(
        self, features: Float[Tensor, "batch time model_dim"]
    ) -> Float[Tensor, "batch time model_dim"]:
        """Return what the sublayer reads."""
        return self.norm(features) if self.pre_norm else features

    def leave(
        self,
        features: Float[Tensor, "batch time model_dim"],
        change: Float[Tensor, "batch time model_dim"],
        *,
        probe: Probe | None = None,
        name: str = "",
    ) -> Float[Tensor, "batch time model_dim"]:
        """Add the output of the sublayer, which has this name, to its residual."""
        joined = self.dropout.onto(features, change if probe is None else probe(name, change))
        return joined if self.pre_norm else self.norm(joined)


class FeedForward(nn.Module):
    """f(x W_1 + b_1) W_2 + b_2 at every position alone (Vaswani et al. 2017, eq. 2)."""

    def __init__(
        self,
        model_dim: int,
        *,
        hidden: int,
        activation: str,
        dropout: float = 0.0,
        biases: bool = True,
    ):
        super().__init__()
        self.inner = Linear(model_dim, hidden * (2 if activation in GATED else 1), bias=biases)
        self.outer = Linear(hidden, model_dim, bias=biases)
        self.activation = activation
        self.dropout = Dropout(dropout)
        for part in (self.inner, self.outer):
            nn.init.xavier_uniform_(part.weight)
            if biases:
                nn.init.zeros_(part.bias)

    def forward(
        self, features: Float[Tensor, "*places model_dim"]
    ) -> Float[Tensor, "*places model_dim"]:
        """Return the change at each position."""
        change: Tensor = self.outer(self._active(self.inner(features)))
        return change

    def _active(self, inner: Tensor) -> Tensor:
        """Return the activation, in training with a part of it dropped."""
        drops = self.training and self.dropout.p > 0
        if self.activation == "relu" and drops and uses_hand_kernels(inner):
            return rectified_dropout(inner, dropout=self.dropout.p)
        dropped: Tensor = self.dropout(ACTIVATIONS[self.activation](inner))
        return dropped


def feed_forward_change(
    network: FeedForward | MixtureOfExperts,
    features: Float[Tensor, "batch time model_dim"],
    *,
    real: Bool[Tensor, "batch time"] | None = None,
    probe: Probe | None = None,
) -> Float[Tensor, "batch time model_dim"]:
    """Return the change at each position, by one network or by the experts that a gate chooses."""
    if isinstance(network, MixtureOfExperts):
        mixed: Tensor = network(features, real=real, probe=probe)
        return mixed
    change: Tensor = network(features)
    return change


class RecurrentUnit(nn.Module):
    """SSRU: c_t = f_t c_{t-1} + (1 - f_t) W x_t, o_t = relu(c_t), f_t = sigmoid(W_f x_t + b_f).

    In place of a decoder's self-attention (Kim et al. 2019, section 3): a step costs the same
    however long the output is.
    """

    def __init__(self, model_dim: int):
        super().__init__()
        self.projection = Linear(model_dim, model_dim, bias=False)  # W
        self.forget = Linear(model_dim, model_dim)  # W_f, b_f
        for part in (self.projection, self.forget):
            nn.init.xavier_uniform_(part.weight)
        nn.init.zeros_(self.forget.bias)

    def forward(
        self,
        inputs: Float[Tensor, "batch time model_dim"],
        cell: Float[Tensor, "batch model_dim"] | None = None,
    ) -> tuple[Float[Tensor, "batch time model_dim"], Float[Tensor, "batch model_dim"]]:
        """Read tokens one after the other; return the output at each, and the last cell."""
        forget = torch.sigmoid(self.forget(inputs))
        added = (1 - forget) * self.projection(inputs)
        if cell is None:
            cell = torch.zeros_like(inputs[:, 0])
        cells = []
        for kept, new in zip(forget.unbind(1), added.unbind(1), strict=True):
            cell = kept * cell + new
            cells.append(cell)
        return F.relu(torch.stack(cells, dim=1)), cell


class SelfAttentionLayer(nn.Module):
    """Self-attention and a feed-forward network with residuals (Vaswani et al. 2017, 3.1)."""

    def __init__(
        self,
        *,
        attention: MultiHeadAttention,
        attention_residual: Residual,
        feed_forward: FeedForward | MixtureOfExperts,
        feed_forward_residual: Residual,
    ):
        super().__init__()
        self.attention = attention
        self.attention_residual = attention_residual
        self.feed_forward = feed_forward
        self.feed_forward_residual = feed_forward_residual

    def forward(
        self,
        features: Float[Tensor, "batch target model_dim"],
        visibility: Visibility,
        *,
        past: Past | None = None,
        start: int = 0,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> tuple[
        Float[Tensor, "batch target model_dim"],
        Past,
        Float[Tensor, "batch heads target source"] | None,
    ]:
        """Read positions that follow those in `past`; return features, past and weights."""
        if probe is not None:
            features = probe("features", features)
        (change, weights), after = self.attention(
            self.attention_residual.enter(features),
            visibility,
            past=past,
            start=start,
            with_weights=with_weights,
            probe=None if probe is None else probe.of_attention,
        )
        features = self.attention_residual.leave(features, change, probe=probe, name="attention")
        if probe is not None:
            features = probe("attended", features)
        change = feed_forward_change(
            self.feed_forward,
            self.feed_forward_residual.enter(features),
            real=visibility.real,
            probe=probe,
        )
        features = self.feed_forward_residual.leave(
            features, change, probe=probe, name="feed_forward"
        )
        return features, after, weights


def recompute_layers(model: nn.Module) -> None:
    """Let the stacks of a Transformer keep only what goes into each layer (Chen et al. 2016)."""
    stacks: list[Any] = [part for part in model.modules() if hasattr(part, "recompute")]
    if not stacks:
        raise SettingsError(
            "training.recompute needs layers of a Transformer, which this model has not; "
            "leave it out."
        )
    for stack in stacks:
        stack.recompute = True


def recompute_layer(layer: nn.Module, *, wanted: bool) -> Callable[..., Any]:
    """Return the layer, as one that is computed again for the gradient if that is wanted.

    Torch's generator is set back for the second time, so the same is dropped.
    """
    if not wanted or not torch.is_grad_enabled():
        return layer
    return partial(checkpoint, layer, use_reentrant=False)
