"""Weights under the names of fairseq, which Hugging Face's MarianMT uses too."""

from collections.abc import Mapping

import torch
from torch import nn

from regard.attention.multihead import MultiHeadAttention
from regard.base.errors import RunError
from regard.base.shapes import Tensor
from regard.models.translator import Translator
from regard.transformer.decoder import TransformerDecoder
from regard.transformer.encoder import TransformerEncoder

# Ours to theirs, inside one layer.
ENCODER_LAYER = {
    "attention": "self_attn",
    "attention_residual.norm": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
DECODER_LAYER = {
    "self_attention": "self_attn",
    "self_residual.norm": "self_attn_layer_norm",
    "cross_attention": "encoder_attn",
    "cross_residual.norm": "encoder_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}


@torch.no_grad()
def fill_translator(
    model: Translator[object], tensors: Mapping[str, Tensor], *, prefix: str = ""
) -> None:
    """Copy all layers; embeddings depend on a vocabulary and are left to the caller."""
    for stack, name, parts in (
        (model.encoder, "encoder", ENCODER_LAYER),
        (model.decoder, "decoder", DECODER_LAYER),
    ):
        if not isinstance(stack, TransformerEncoder | TransformerDecoder):
            raise RunError(
                f"The {name} is a {type(stack).__name__}; only a Transformer can be filled."
            )
        for number, layer in enumerate(stack.layers):
            for ours, theirs in parts.items():
                where = f"{prefix}{name}.layers.{number}.{theirs}"
                _fill(layer.get_submodule(ours), tensors, where)
        if stack.norm is not None:
            _fill(stack.norm, tensors, f"{prefix}{name}.layer_norm")


def _fill(module: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    if isinstance(module, MultiHeadAttention):
        for kind in ("weight", "bias"):
            parts = [_find(tensors, f"{where}.{name}_proj.{kind}") for name in "qkv"]
            _copy(getattr(module.projection, kind), torch.cat(parts), where)
        return _fill(module.output, tensors, f"{where}.out_proj")
    for kind, parameter in module.named_parameters(recurse=False):
        _copy(parameter, _find(tensors, f"{where}.{kind}"), where)
    return None


def _find(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in tensors:
        raise RunError(
            f"The weights have no tensor {name!r}: they belong to another kind of model."
        )
    return tensors[name]


def _copy(parameter: Tensor, found: Tensor, where: str) -> None:
    if parameter.shape != found.shape:
        raise RunError(
            f"The tensors of {where!r} have shape {tuple(found.shape)}, but the model has "
            f"{tuple(parameter.shape)}."
        )
    parameter.copy_(found)
