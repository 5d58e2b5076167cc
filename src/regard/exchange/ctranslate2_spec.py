"""A Transformer in CTranslate2's terms: its layers, its weights and the table of positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from ctranslate2.specs import common_spec, transformer_spec
from torch import nn

from regard.attention.multihead import MultiHeadAttention
from regard.attention.positions import RelativePositions
from regard.base.shapes import Float, Tensor
from regard.models.translator import Translator
from regard.settings.model import RecurrentSettings
from regard.settings.transformer import TransformerSettings
from regard.transformer.layers import Embedded, FeedForward, Residual

ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "swish": common_spec.Activation.SWISH,
    "swiglu": common_spec.Activation.SWISH,
}
# What CTranslate2 has no layer for: the setting, and the values that it does have one for.
KNOWN: dict[str, tuple[object, ...]] = {
    "encoder": ("attention",),
    "decoder": ("attention",),
    "kernel": ("softmax",),
    "window": (None,),
    "positions": ("sinusoidal", "learned", "relative", "rotary", "none"),
}
INSIDE = ("relative", "rotary")  # positions that act inside the attention


def unsupported(settings: TransformerSettings | RecurrentSettings) -> str | None:
    """Name the setting for which CTranslate2 has no layer, with its value; None if there is none.

    Its linear penalties (alibi) are those of a decoder alone, so an encoder cannot have them.
    """
    if not isinstance(settings, TransformerSettings):
        return f"model.family = {settings.family!r}"
    for name, known in KNOWN.items():
        value = getattr(settings, name)
        if value not in known:
            return f"model.{name} = {value!r}"
    return None


@torch.no_grad()
def translator_spec(
    model: Translator[Any], *, settings: TransformerSettings, most_positions: int
) -> transformer_spec.TransformerSpec:
    """Return the model with all its weights; vocabularies are left to the caller.

    Positions are written as a table of our own vectors, at most `most_positions` of them, because
    CTranslate2 would make other sinusoids.
    """
    shape = {
        "num_heads": settings.heads,
        "pre_norm": settings.norm_placement == "pre",
        "activation": ACTIVATIONS[settings.activation],
        "ffn_glu": settings.activation == "swiglu",
        "rms_norm": settings.norm == "rms",
        "relative_position": settings.positions == "relative",
    }
    if settings.positions == "rotary":  # over the whole head, whose halves are turned
        shape |= {"rotary_dim": 0, "rotary_interleave": False}
    encoder = transformer_spec.TransformerEncoderSpec(settings.layers, **shape)
    decoder = transformer_spec.TransformerDecoderSpec(
        settings.decoder_layers or settings.layers,
        alignment_layer=settings.alignment_layer,
        alignment_heads=0,  # the mean of all heads
        **shape,
    )
    stacks: Any = model
    places = 0 if settings.positions in INSIDE else most_positions
    _set_embedded(encoder, encoder.embeddings[0], stacks.encoder.embedded, places)
    _set_embedded(decoder, decoder.embeddings, stacks.decoder.embedded, places)
    for spec, layer in zip(encoder.layer, stacks.encoder.layers, strict=True):
        _set_attention(spec.self_attention, layer.attention, layer.around_attention)
        _set_feed_forward(spec.ffn, layer.feed_forward, layer.around_feed_forward)
    for spec, layer in zip(decoder.layer, stacks.decoder.layers, strict=True):
        _set_attention(spec.self_attention, layer.own, layer.around_own)
        _set_attention(spec.attention, layer.across, layer.around_across, across=True)
        _set_feed_forward(spec.ffn, layer.feed_forward, layer.around_feed_forward)
    for spec, stack in ((encoder, stacks.encoder), (decoder, stacks.decoder)):
        if stack.norm is not None:
            _set_norm(spec.layer_norm, stack.norm)
    _set_linear(decoder.projection, model.projection.weight, model.projection.bias)
    whole = transformer_spec.TransformerSpec(encoder, decoder)
    whole.config.add_source_eos = True
    whole.config.layer_norm_epsilon = stacks.decoder.layers[0].around_own.norm.eps
    return whole


def _set_embedded(spec: Any, table: Any, embedded: Embedded, places: int) -> None:
    weight = embedded.embedding.weight
    table.weight = _array(weight)
    spec.scale_embeddings = embedded.scale
    if not places:
        return
    if embedded.positions is None:
        vectors = torch.zeros(1, weight.shape[1]).expand(places, -1)
    else:
        end = getattr(embedded.positions, "max_length", places)  # of learned ones
        vectors = embedded.positions(min(end, places))
    spec.position_encodings.encodings = _array(vectors)


def _set_attention(
    spec: Any, attention: MultiHeadAttention, around: Residual, *, across: bool = False
) -> None:
    _set_norm(spec.layer_norm, around.norm)
    weight, bias = attention.projection.weight, attention.projection.bias
    if across:  # queries come from the target, keys and values from the source
        width = attention.model_dim
        _set_linear(spec.linear[0], weight[:width], bias[:width])
        _set_linear(spec.linear[1], weight[width:], bias[width:])
    else:
        _set_linear(spec.linear[0], weight, bias)
    _set_linear(spec.linear[-1], attention.output.weight, attention.output.bias)
    if isinstance(attention.positions, RelativePositions):
        spec.relative_position_keys = _array(attention.positions.keys)
        spec.relative_position_values = _array(attention.positions.values)


def _set_feed_forward(spec: Any, network: FeedForward, around: Residual) -> None:
    _set_norm(spec.layer_norm, around.norm)
    weight: Tensor = network.inner.weight
    bias: Tensor = network.inner.bias
    if network.activation == "swiglu":  # ours has gate and value in turn, theirs two matrices
        _set_linear(spec.linear_0_noact, weight[1::2], bias[1::2])
        weight, bias = weight[::2], bias[::2]
    _set_linear(spec.linear_0, weight, bias)
    _set_linear(spec.linear_1, network.outer.weight, network.outer.bias)


def _set_norm(spec: Any, norm: nn.Module) -> None:
    for ours, theirs in (("weight", "gamma"), ("bias", "beta")):
        if (part := getattr(norm, ours, None)) is not None:
            setattr(spec, theirs, _array(part))


def _set_linear(
    spec: Any,
    weight: Float[Tensor, "output input"],
    bias: Float[Tensor, "output"] | None,
) -> None:
    spec.weight = _array(weight)
    if bias is not None:
        spec.bias = _array(bias)


def _array(tensor: Tensor) -> Float[np.ndarray, "*shape"]:
    """Return the values as an array of their own: CTranslate2 quantises in place."""
    return tensor.to("cpu", torch.float32).numpy().copy()
