"""Dropout is unbiased, independent, seeded and resumable; its gradient is its own mask."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.compute.dropout import LEVELS, Dropout

SIZE = 1_000_000


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_the_share_and_the_mean_are_right(share: float) -> None:
    torch.manual_seed(1)
    found = Dropout(share)(torch.ones(SIZE))
    spread = math.sqrt(share * (1 - share) / SIZE)
    zeroed = (found == 0).double().mean().item()
    assert zeroed == pytest.approx(share, abs=5 * spread + 0.5 / LEVELS)
    assert found.double().mean().item() == pytest.approx(1, abs=5 * spread / (1 - share))
    assert found.unique().tolist() == pytest.approx([0, 1 / (1 - share)], rel=1e-3)


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8, 128])
def test_neighbours_are_independent(lag: int) -> None:
    torch.manual_seed(2)
    kept = (Dropout(0.3)(torch.ones(SIZE)) != 0).double() - 0.7
    correlation = (kept[lag:] * kept[:-lag]).mean().item() / 0.21
    assert abs(correlation) < 5 / math.sqrt(SIZE)


def test_calls_are_independent_of_each_other() -> None:
    torch.manual_seed(3)
    dropout = Dropout(0.3)
    masks = torch.stack([(dropout(torch.ones(10_000)) != 0).double() - 0.7 for _ in range(40)])
    correlations = (masks @ masks.T / 10_000 / 0.21).triu(1).abs()
    assert correlations.max().item() < 5 / math.sqrt(10_000)
    by_place = masks.mean(0).abs()  # no place is kept more often than others
    assert by_place.max().item() < 6 * math.sqrt(0.21 / 40)


def test_torch_s_generator_decides_all() -> None:
    dropout, inputs = Dropout(0.3), torch.ones(50, 7)
    torch.manual_seed(4)
    first = dropout(inputs)
    state = torch.get_rng_state()
    second = dropout(inputs)
    assert not torch.equal(first, second)
    torch.set_rng_state(state)
    assert torch.equal(dropout(inputs), second)
    torch.manual_seed(4)
    assert torch.equal(dropout(inputs), first)


@settings(deadline=None, max_examples=30)
@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    share=st.floats(0.01, 0.95),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_output_and_gradient_share_one_mask(
    shape: list[int], share: float, dtype: torch.dtype
) -> None:
    dropout = Dropout(share)
    inputs = torch.randn(shape, dtype=dtype).add(10).requires_grad_()
    residual = torch.randn(shape, dtype=dtype).requires_grad_()
    alone = dropout(inputs)
    (gradient,) = torch.autograd.grad(alone.sum(), inputs)
    torch.testing.assert_close(alone, gradient * inputs)

    joined = dropout.onto(residual, inputs)
    gradient, around = torch.autograd.grad(joined.sum(), (inputs, residual))
    torch.testing.assert_close(joined, residual + gradient * inputs)
    assert torch.equal(around, torch.ones_like(residual))


def test_the_gradient_is_that_of_the_plain_formula() -> None:
    inputs = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    residual = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    dropout = Dropout(0.4)

    def same_bits(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)
        return dropout.onto(second, dropout(first))

    assert torch.autograd.gradcheck(same_bits, (inputs, residual))


def test_nothing_is_dropped_outside_training_or_with_a_share_of_zero() -> None:
    inputs = torch.randn(5)
    assert Dropout(0.5).eval()(inputs) is inputs
    assert Dropout(0.0)(inputs) is inputs
    assert torch.equal(Dropout(0.5).eval().onto(inputs, inputs), 2 * inputs)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_beyond_reason_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="must be at least 0 and below 1"):
        Dropout(share)


def test_it_can_be_printed() -> None:
    assert repr(Dropout(0.25)) == "Dropout(p=0.25)"
