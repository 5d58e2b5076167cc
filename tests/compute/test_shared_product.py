from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.compute.linear import shared, shared_product, weighted_sum


def loop(start: Tensor, matrix: Tensor, steps: int) -> Tensor:
    state = start
    for _ in range(steps):
        state = torch.tanh(
            weighted_sum(shared_product(state, matrix, shared_product(state.sin(), matrix)), matrix)
        )
    return state


@settings(deadline=None, max_examples=20)
@given(steps=st.integers(0, 4), batched=st.booleans(), direct=st.booleans())
def test_gradients_are_those_of_autograd(steps: int, batched: bool, direct: bool) -> None:
    torch.manual_seed(1)
    batch = (3,) if batched else ()
    matrix = torch.randn(*batch, 4, 5, requires_grad=True)
    start = torch.randn(*batch, 2, 5, requires_grad=True)
    found, expected = (
        torch.autograd.grad(
            loop(start, used, steps).sum() + (used.sin().sum() if direct else 0 * matrix.sum()),
            [matrix, start],
        )
        for used in (shared(matrix), matrix)
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_a_second_backward_gives_the_same_again() -> None:
    matrix = torch.randn(4, 5, requires_grad=True)
    result = loop(torch.randn(2, 5), shared(matrix), 3).sum()
    (first,) = torch.autograd.grad(result, [matrix], retain_graph=True)
    (second,) = torch.autograd.grad(result, [matrix])
    torch.testing.assert_close(first, second)


def test_without_gradients_nothing_is_noted() -> None:
    matrix = torch.randn(4, 5)
    assert shared(matrix) is matrix
    with torch.no_grad():
        parameter = torch.randn(4, 5, requires_grad=True)
        assert shared(parameter) is parameter
