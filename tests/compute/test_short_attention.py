"""Attention with its gradient by hand equals the plain formula, its gradients included."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention.masks import forbidden
from regard.compute.dropout import Dropout
from regard.compute.kernels import (
    group_penalties,
    group_queries,
    plain_attention,
    short_attention,
)


def parts_of(target: int, source: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(7)
    return [
        torch.randn(2, 3, time, 4, dtype=torch.float64, generator=generator).requires_grad_()
        for time in (target, source, source)
    ]


def penalties_of(kind: str, target: int, source: int) -> Tensor | None:
    hidden = forbidden(torch.float64)
    if kind == "padding":
        padded = torch.arange(source) >= torch.tensor([[source], [(source + 1) // 2]])
        return padded.double()[:, None, None, :] * hidden
    if kind == "future":
        return torch.ones(target, source, dtype=torch.float64).triu(1) * hidden
    return None


@settings(deadline=None, max_examples=30)
@given(
    target=st.integers(1, 6),
    source=st.integers(1, 6),
    kind=st.sampled_from(["none", "padding", "future"]),
    share=st.sampled_from([0.0, 0.3]),
)
def test_context_and_gradients_are_those_of_the_plain_formula(
    target: int, source: int, kind: str, share: float
) -> None:
    parts, penalties = parts_of(target, source), penalties_of(kind, target, source)
    torch.manual_seed(1)
    found = short_attention(*parts, penalties=penalties, dropout=share)
    torch.manual_seed(1)
    drop = Dropout(share) if share else None
    expected = plain_attention(*parts, penalties=penalties, dropout=drop).context
    torch.testing.assert_close(found, expected)
    outward = torch.randn(found.shape, dtype=found.dtype)
    for mine, wanted in zip(
        torch.autograd.grad(found, parts, outward),
        torch.autograd.grad(expected, parts, outward),
        strict=True,
    ):
        torch.testing.assert_close(mine, wanted)


@pytest.mark.parametrize("kind", ["none", "padding", "future", "by head"])
@pytest.mark.parametrize("groups", [1, 2])
def test_grouped_queries_learn_as_if_each_head_had_keys_of_its_own(kind: str, groups: int) -> None:
    generator = torch.Generator().manual_seed(7)
    query, keys, values = (
        torch.randn(2, heads, 5, 4, dtype=torch.float64, generator=generator).requires_grad_()
        for heads in (4, groups, groups)
    )
    penalties = penalties_of(kind, 5, 5)
    if kind == "by head":
        penalties = torch.randn(4, 5, 5, dtype=torch.float64, generator=generator)
    grown = (part.repeat_interleave(4 // groups, dim=1) for part in (keys, values))
    expected = plain_attention(query, *grown, penalties=penalties).context
    together = group_penalties(penalties, heads=4, groups=groups, target=5)
    found = short_attention(
        group_queries(query, groups=groups), keys, values, penalties=together
    ).view(query.shape)
    torch.testing.assert_close(found, expected)
    parts, outward = (query, keys, values), torch.randn_like(found)
    for mine, wanted in zip(
        torch.autograd.grad(found, parts, outward),
        torch.autograd.grad(expected, parts, outward),
        strict=True,
    ):
        torch.testing.assert_close(mine, wanted)


@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["none", "padding", "future"])
def test_the_gradient_is_that_of_finite_differences(share: float, kind: str) -> None:
    penalties = penalties_of(kind, 3, 4)

    def same_bits(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        torch.manual_seed(5)
        return short_attention(query, keys, values, penalties=penalties, dropout=share)

    assert torch.autograd.gradcheck(same_bits, parts_of(3, 4))
