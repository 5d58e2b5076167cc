"""ReLU and dropout in one equal the two after each other."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.compute.dropout import Dropout, rectified_dropout
from regard.transformer.layers import FeedForward


@settings(deadline=None, max_examples=30)
@given(shape=st.lists(st.integers(0, 6), max_size=3), share=st.floats(0.01, 0.9))
def test_value_and_gradient_are_those_of_the_two(shape: list[int], share: float) -> None:
    inner = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(1)
    found = rectified_dropout(inner, dropout=share)
    torch.manual_seed(1)
    expected = Dropout(share)(F.relu(inner))
    torch.testing.assert_close(found, expected)
    outward = torch.randn(shape, dtype=torch.float64)
    mine, wanted = (torch.autograd.grad(one, inner, outward)[0] for one in (found, expected))
    torch.testing.assert_close(mine, wanted)


def test_the_gradient_is_that_of_finite_differences() -> None:
    def same_bits(inner: Tensor) -> Tensor:
        torch.manual_seed(5)
        return rectified_dropout(inner, dropout=0.4)

    inner = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(same_bits, (inner,))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_feed_forward_network_drops_in_training_only(activation: str) -> None:
    torch.manual_seed(2)
    network = FeedForward(6, hidden=40, activation=activation, dropout=0.5)
    features = torch.randn(2, 3, 6)
    assert not torch.equal(network(features), network(features))
    network.eval()
    assert torch.equal(network(features), network(features))
