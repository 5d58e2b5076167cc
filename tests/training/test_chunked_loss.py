"""The loss in chunks is the plain loss: its value and all of its gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.training.losses import chunked_token_loss, token_loss


def example(seed: int, *, bias: bool) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(3, 5, 4, dtype=torch.float64, generator=generator).requires_grad_()
    weight = torch.randn(7, 4, dtype=torch.float64, generator=generator).requires_grad_()
    row = torch.randn(7, dtype=torch.float64, generator=generator).requires_grad_()
    expected = torch.randint(0, 7, (3, 5), generator=generator)
    mask = torch.rand(3, 5, generator=generator) < 0.7
    return features, expected, mask, [weight, row] if bias else [weight]


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 1000),
    bias=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.1, 0.4]),
    rows=st.integers(1, 20),
)
def test_value_and_gradients_are_those_of_the_plain_formula(
    seed: int, bias: bool, smoothing: float, rows: int
) -> None:
    features, expected, mask, weights = example(seed, bias=bias)
    plain = token_loss(
        features,
        expected=expected,
        mask=mask,
        project=lambda inputs: F.linear(inputs, *weights),
        smoothing=smoothing,
    )
    chunked = chunked_token_loss(
        features,
        expected=expected,
        mask=mask,
        weight=weights[0],
        bias=weights[1] if bias else None,
        smoothing=smoothing,
        rows=rows,
    )
    torch.testing.assert_close(chunked.objective, plain.objective)
    torch.testing.assert_close(chunked.nats, plain.nats)
    assert not chunked.nats.requires_grad
    inputs = [features, *weights]
    for found, wanted in zip(
        torch.autograd.grad(chunked.objective / 3, inputs),
        torch.autograd.grad(plain.objective / 3, inputs),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_is_that_of_finite_differences(smoothing: float) -> None:
    features, expected, mask, (weight, bias) = example(1, bias=True)

    def objective(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return chunked_token_loss(
            features,
            expected=expected,
            mask=mask,
            weight=weight,
            bias=bias,
            smoothing=smoothing,
            rows=4,
        ).objective

    assert torch.autograd.gradcheck(objective, (features, weight, bias))


def test_a_hopeless_prediction_has_a_finite_and_exact_loss() -> None:
    features = torch.tensor([[[200.0]]], requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0]])
    found = chunked_token_loss(
        features, expected=torch.tensor([[1]]), mask=torch.tensor([[True]]), weight=weight
    )
    assert found.nats.item() == pytest.approx(400)
    found.objective.backward()
    assert features.grad is not None
    assert features.grad.item() == pytest.approx(2)


def test_frozen_weights_get_no_gradient_and_evaluation_needs_none() -> None:
    features, expected, mask, (weight, _) = example(2, bias=True)
    given = {"expected": expected, "mask": mask, "rows": 3}
    found = chunked_token_loss(features, weight=weight.detach(), **given)
    found.objective.backward()
    assert features.grad is not None
    assert weight.grad is None
    with torch.no_grad():
        again = chunked_token_loss(features, weight=weight, **given)
    torch.testing.assert_close(again.nats, found.nats)


def test_no_position_at_all_costs_nothing() -> None:
    features, expected, mask, (weight, _) = example(3, bias=True)
    found = chunked_token_loss(
        features, expected=expected, mask=torch.zeros_like(mask), weight=weight, smoothing=0.1
    )
    assert found.objective.item() == 0
