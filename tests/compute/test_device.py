"""Hand-made kernels step aside for compilers and other devices, where the formulas are the same."""

from __future__ import annotations

import pytest
import torch

from regard.attention.masks import Visibility
from regard.attention.multihead import MultiHeadAttention
from regard.compute.device import uses_hand_kernels
from regard.transformer.layers import FeedForward


def test_they_serve_on_a_cpu_and_outside_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    assert uses_hand_kernels(torch.ones(1))
    assert not uses_hand_kernels(torch.ones(1, device="meta"))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert not uses_hand_kernels(torch.ones(1))


def test_a_layer_finds_the_same_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    attention = MultiHeadAttention(model_dim=8, heads=2)
    network = FeedForward(8, hidden=12, activation="relu")
    inputs = torch.randn(2, 5, 8)
    visibility = Visibility(
        target=5, source=5, causal=True, dtype=inputs.dtype, device=torch.device("cpu")
    )

    def gradients() -> list[torch.Tensor]:
        (context, _), _ = attention(inputs, visibility)
        parameters = [*attention.parameters(), *network.parameters()]
        return list(torch.autograd.grad(network(context).square().sum(), parameters))

    mine = gradients()
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for found, wanted in zip(gradients(), mine, strict=True):
        torch.testing.assert_close(found, wanted)


def test_without_them_training_still_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    network = FeedForward(8, hidden=40, activation="relu", dropout=0.5)
    inputs = torch.randn(2, 5, 8)
    assert not torch.equal(network(inputs), network(inputs))
