"""Splitting into heads is a view in another order; its gradient is the way back."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.compute.kernels import split_heads


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_and_heads_stand_where_the_projection_has_them(parts: int) -> None:
    projected = torch.randn(2, 5, parts * 3 * 4)
    found = split_heads(projected, heads=(3,) * parts)
    assert len(found) == parts
    for number, part in enumerate(found):
        for head in range(3):
            start = number * 12 + head * 4
            assert torch.equal(part[:, head], projected[..., start : start + 4])


def test_parts_may_have_different_numbers_of_heads() -> None:
    projected = torch.randn(2, 5, 8 * 3)
    query, keys, values = split_heads(projected, heads=(4, 2, 2))
    assert torch.equal(query[:, 3], projected[..., 9:12])
    assert torch.equal(keys[:, 1], projected[..., 15:18])
    assert torch.equal(values[:, 0], projected[..., 18:21])


@pytest.mark.parametrize("heads", [(2, 2, 2), (4, 1, 1)])
@pytest.mark.parametrize("used", [[0, 1, 2], [0, 2], [1]])
def test_the_gradient_is_that_of_finite_differences(
    used: list[int], heads: tuple[int, ...]
) -> None:
    projected = torch.randn(2, 3, 12, dtype=torch.float64, requires_grad=True)

    def some(inputs: Tensor) -> list[Tensor]:
        found = split_heads(inputs, heads=heads)
        return [found[number] for number in used]

    assert torch.autograd.gradcheck(some, (projected,))


def test_a_part_that_nobody_learns_from_has_no_gradient() -> None:
    class Silent(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, inputs: Tensor) -> Tensor:
            return inputs.sum()

        @staticmethod
        def backward(ctx: object, gradient: Tensor) -> None:
            return None

    projected = torch.randn(2, 3, 12, requires_grad=True)
    Silent.apply(split_heads(projected, heads=(2, 2, 2))[0]).backward()
    assert projected.grad is None
