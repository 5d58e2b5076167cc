from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention.lookup import coverage_penalty

ALL = torch.ones(1, 3, dtype=torch.bool)


def test_looking_at_each_position_once_costs_nothing() -> None:
    assert coverage_penalty(torch.eye(3)[None], ALL) == 0


def test_looking_at_one_position_always_costs_one_each_time_again() -> None:
    weights = torch.tensor([[[1.0, 0.0]] * 3])
    assert coverage_penalty(weights, ALL) == 2
    assert coverage_penalty(weights, torch.tensor([[True, True, False]])) == 1


@settings(deadline=None, max_examples=25)
@given(target=st.integers(1, 5), source=st.integers(1, 4), seed=st.integers(0, 99))
def test_it_equals_its_formula(target: int, source: int, seed: int) -> None:
    torch.manual_seed(seed)
    weights = torch.randn(2, target, source).softmax(-1)
    mask = torch.rand(2, target) < 0.7
    expected = sum(
        min(float(weights[b, i, j]), float(weights[b, :i, j].sum()))
        for b in range(2)
        for i in range(target)
        for j in range(source)
        if mask[b, i]
    )
    torch.testing.assert_close(float(coverage_penalty(weights, mask)), float(expected))
