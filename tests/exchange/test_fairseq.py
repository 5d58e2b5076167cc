from __future__ import annotations

import pytest
import torch

from regard.base.errors import RunError
from regard.exchange.fairseq import fill_translator
from regard.models.build import TransformerPlan

PLAN = {"layers": 1, "decoder_layers": 1, "model_dim": 8, "heads": 2, "feed_forward": 8}


def test_a_missing_tensor_is_named() -> None:
    model = TransformerPlan(**PLAN).translator(source_vocab=9, target_vocab=9)
    with pytest.raises(RunError, match=r"no tensor 'encoder.layers.0.self_attn.q_proj.weight'"):
        fill_translator(model, {})


def test_a_tensor_of_another_shape_is_named() -> None:
    model = TransformerPlan(**PLAN).translator(source_vocab=9, target_vocab=9)
    names = [f"x.encoder.layers.0.self_attn.{letter}_proj.weight" for letter in "qkv"]
    with pytest.raises(RunError, match=r"shape \(12, 8\), but the model has \(24, 8\)"):
        fill_translator(model, {name: torch.zeros(4, 8) for name in names}, prefix="x.")


def test_only_transformers_are_filled() -> None:
    plan = TransformerPlan(**PLAN, encoder="convolutional")
    model = plan.translator(source_vocab=9, target_vocab=9)
    with pytest.raises(RunError, match="encoder is a ConvolutionalEncoder"):
        fill_translator(model, {})
