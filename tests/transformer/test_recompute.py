"""Layers computed twice give the same loss and gradients, dropout included, and hold less."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.base.errors import SettingsError
from regard.models.build import TransformerPlan
from regard.transformer.layers import recompute_layers

OPTIONS: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "relative": {"positions": "relative"},
    "ssru": {"decoder": "ssru"},
    "experts": {"experts": 3, "experts_per_token": 2, "expert_gate": "noisy"},
}


def gradients(options: dict[str, Any], *, recompute: bool) -> tuple[dict[str, Tensor], int]:
    """Return the gradients of a small model, and how many numbers it remembered for them."""
    torch.manual_seed(3)
    plan = TransformerPlan(
        **{"layers": 2, "decoder_layers": 2, "model_dim": 16, "heads": 2, "feed_forward": 24}
        | {"dropout": 0.2, "attention_dropout": 0.2, "activation_dropout": 0.2}
        | options
    )
    model = plan.translator(source_vocab=20, target_vocab=20).train()
    if recompute:
        recompute_layers(model)
    words, mask = torch.randint(4, 20, (3, 7)), torch.ones(3, 7, dtype=torch.bool)
    mask[1, 4:] = False
    held = 0

    def count(tensor: Tensor) -> Tensor:
        nonlocal held
        held += tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        features = model(words, mask, words).features
    features.square().sum().backward()
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return found, held


@pytest.mark.parametrize("options", list(OPTIONS.values()), ids=list(OPTIONS))
def test_gradients_are_the_same_and_less_is_held(options: dict[str, Any]) -> None:
    plain, held = gradients(options, recompute=False)
    again, held_again = gradients(options, recompute=True)
    assert plain.keys() == again.keys()
    for name, gradient in plain.items():
        torch.testing.assert_close(again[name], gradient, msg=name)
    assert held_again < held / 2


def test_a_model_without_such_layers_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"training\.recompute needs layers of a Transformer"):
        recompute_layers(nn.Linear(2, 2))
