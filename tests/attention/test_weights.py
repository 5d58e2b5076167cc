from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention.lookup import attend, masked_softmax

ROWS = st.lists(st.tuples(st.floats(-1e4, 1e4, width=32), st.booleans()), min_size=1, max_size=12)


@settings(deadline=None, max_examples=100)
@given(ROWS)
def test_weights_sum_to_one_where_attention_is_allowed(rows: list[tuple[float, bool]]) -> None:
    scores = torch.tensor([[score for score, _ in rows]])
    mask = torch.tensor([[allowed for _, allowed in rows]])
    weights = masked_softmax(scores, mask)
    assert (weights >= 0).all()
    assert (weights[~mask] == 0).all()
    assert float(weights.sum()) == pytest.approx(1.0 if mask.any() else 0.0, abs=1e-5)


def test_allowed_positions_share_as_a_softmax_over_them_alone() -> None:
    scores = torch.tensor([[1.0, 5.0, 2.0, -3.0]])
    mask = torch.tensor([[True, False, True, True]])
    expected = torch.softmax(scores[mask], dim=0)
    torch.testing.assert_close(masked_softmax(scores, mask)[mask], expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_row_with_nothing_to_attend_to_is_zero_not_nan(dtype: torch.dtype) -> None:
    scores = torch.randn(2, 3, dtype=dtype, requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([[False] * 3, [True] * 3]))
    assert weights[0].tolist() == [0.0, 0.0, 0.0]
    weights.sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_the_context_is_the_weighted_sum_of_the_values() -> None:
    torch.manual_seed(1)
    scores, values = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    mask = torch.tensor([[True, True, True, True], [True, True, False, False]])
    context, weights = attend(scores, values=values, mask=mask, with_weights=True)
    assert weights is not None
    for b in range(2):
        for i in range(3):
            expected = sum(weights[b, i, j] * values[b, j] for j in range(4))
            torch.testing.assert_close(context[b, i], expected)
    assert (weights[1, :, 2:] == 0).all()


def test_weights_are_returned_only_on_request() -> None:
    scores, values = torch.randn(1, 2, 3), torch.randn(1, 3, 4)
    mask = torch.ones(1, 3, dtype=torch.bool)
    without = attend(scores, values=values, mask=mask)
    with_them = attend(scores, values=values, mask=mask, with_weights=True)
    assert without.weights is None
    torch.testing.assert_close(without.context, with_them.context)


def test_what_is_masked_never_matters() -> None:
    scores, values = torch.randn(1, 2, 3), torch.randn(1, 3, 4)
    mask = torch.tensor([[True, True, False]])
    before = attend(scores, values=values, mask=mask).context
    scores[:, :, 2], values[:, 2] = 1e6, -1e6
    torch.testing.assert_close(attend(scores, values=values, mask=mask).context, before)
