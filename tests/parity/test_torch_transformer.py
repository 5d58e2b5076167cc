"""With the same weights, the layers give what torch.nn.Transformer gives."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

from regard.attention.multihead import MultiHeadAttention
from regard.base.results import Encoded
from regard.models.build import TransformerPlan


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    ours.projection.weight.copy_(theirs.in_proj_weight)
    ours.projection.bias.copy_(theirs.in_proj_bias)
    ours.output.load_state_dict(theirs.out_proj.state_dict())


def copy_layer(ours: Any, theirs: Any, *, pairs: dict[str, str]) -> None:
    for our_name, their_name in pairs.items():
        part = getattr(theirs, their_name)
        if isinstance(part, nn.MultiheadAttention):
            copy_attention(getattr(ours, our_name), part)
        else:
            ours.get_submodule(our_name).load_state_dict(part.state_dict())


ENCODER = {
    "attention": "self_attn",
    "attention_residual.norm": "norm1",
    "feed_forward.inner": "linear1",
    "feed_forward.outer": "linear2",
    "feed_forward_residual.norm": "norm2",
}
DECODER = {
    "self_attention": "self_attn",
    "self_residual.norm": "norm1",
    "cross_attention": "multihead_attn",
    "cross_residual.norm": "norm2",
    "feed_forward.inner": "linear1",
    "feed_forward.outer": "linear2",
    "feed_forward_residual.norm": "norm3",
}


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_outputs_equal_torch(placement: str, activation: str) -> None:
    torch.manual_seed(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that pre-norm takes its slower path
        theirs = nn.Transformer(
            d_model=32,
            nhead=4,
            num_encoder_layers=3,
            num_decoder_layers=2,
            dim_feedforward=64,
            activation=activation,
            batch_first=True,
            norm_first=placement == "pre",
        )
    for parameter in theirs.parameters():  # biases and gains too
        nn.init.normal_(parameter, std=0.2)
    ours = TransformerPlan(
        layers=3,
        decoder_layers=2,
        model_dim=32,
        heads=4,
        feed_forward=64,
        activation=activation,
        norm_placement=placement,
        positions="none",
        scaled_embeddings=False,
    ).translator(source_vocab=40, target_vocab=50)
    encoder: Any = ours.encoder
    decoder: Any = ours.decoder
    with torch.no_grad():
        for our_layer, their_layer in zip(encoder.layers, theirs.encoder.layers, strict=True):
            copy_layer(our_layer, their_layer, pairs=ENCODER)
        for our_layer, their_layer in zip(decoder.layers, theirs.decoder.layers, strict=True):
            copy_layer(our_layer, their_layer, pairs=DECODER)
        # torch adds a norm after the last layer in both cases; the paper's post-norm has none.
        for our_stack, their_stack in ((encoder, theirs.encoder), (decoder, theirs.decoder)):
            our_stack.norm = their_stack.norm
    ours.train()  # without dropout; torch's evaluation would take a shortcut of its own
    theirs.train()
    for module in (*ours.modules(), *theirs.modules()):
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        if hasattr(module, "p"):
            module.p = 0.0

    source, target = torch.randint(4, 40, (3, 9)), torch.randint(4, 50, (3, 7))
    mask = torch.ones(3, 9, dtype=torch.bool)
    mask[2, 5:] = False
    expected = theirs(
        encoder.embedded(source),
        decoder.embedded(target),
        tgt_mask=~torch.ones(7, 7).tril().bool(),
        src_key_padding_mask=~mask,
        memory_key_padding_mask=~mask,
    )
    encoded: Encoded = ours.encode(source, mask)
    memory = theirs.encoder(encoder.embedded(source), src_key_padding_mask=~mask)
    torch.testing.assert_close(encoded.memory[mask], memory[mask], rtol=1e-5, atol=1e-5)
    found = ours(source, mask, target).features
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
