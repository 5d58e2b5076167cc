from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention.lookup import POOLINGS, LecturePooling, Pooling, SoftmaxPooling


def test_the_registry_and_the_parameters_of_the_lectures() -> None:
    counts = {
        name: sum(p.numel() for p in kind(time=20, hidden=2).parameters())
        for name, kind in POOLINGS.items()
    }
    assert counts == {"lecture": 22, "softmax": 22}


@settings(deadline=None, max_examples=20)
@given(time=st.integers(1, 12), hidden=st.integers(1, 5), seed=st.integers(0, 99))
def test_softmax_weights_are_a_distribution_and_make_the_context(
    time: int, hidden: int, seed: int
) -> None:
    torch.manual_seed(seed)
    pooling = SoftmaxPooling(time=time, hidden=hidden)
    states = torch.randn(3, time, hidden)
    context, weights = pooling(states, with_weights=True)
    assert weights is not None
    torch.testing.assert_close(weights.sum(-1), torch.ones(3))
    assert (weights > 0).all()
    for row in range(3):
        by_hand = sum(weights[row, t] * states[row, t] for t in range(time))
        torch.testing.assert_close(context[row], by_hand)


def test_softmax_follows_its_formula() -> None:
    pooling = SoftmaxPooling(time=4, hidden=2)
    states = torch.randn(1, 4, 2)
    scores = [torch.tanh(pooling.readout @ states[0, t] + pooling.bias[t]).item() for t in range(4)]
    expected = torch.softmax(torch.tensor(scores), 0)
    torch.testing.assert_close(pooling.weigh(states)[0], expected)


def test_lecture_follows_its_formula_and_its_weights_are_free() -> None:
    pooling = LecturePooling(time=3, hidden=2)
    with torch.no_grad():
        pooling.alpha.copy_(torch.tensor([2.0, -1.0, 0.5]))
        pooling.bias.copy_(torch.tensor([0.25, -0.5]))
    states = torch.randn(2, 3, 2)
    context, weights = pooling(states, with_weights=True)
    expected = 2 * states[:, 0] - states[:, 1] + 0.5 * states[:, 2] + pooling.bias
    torch.testing.assert_close(context, expected)
    assert weights is not None and weights.tolist() == [[2.0, -1.0, 0.5]] * 2


def test_the_lecture_kind_begins_as_the_mean() -> None:
    states = torch.randn(2, 5, 3)
    context, _ = LecturePooling(time=5, hidden=3)(states)
    torch.testing.assert_close(context, states.mean(1))


def test_weights_come_only_on_request() -> None:
    assert SoftmaxPooling(time=2, hidden=1)(torch.zeros(1, 2, 1)).weights is None


def test_another_number_of_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="3 time steps were given, but it has weights for 4"):
        SoftmaxPooling(time=4, hidden=2)(torch.zeros(1, 3, 2))


def test_a_kind_must_give_a_formula() -> None:
    with pytest.raises(TypeError, match="Pooling gives no formula"):
        Pooling(time=2, hidden=1)(torch.zeros(1, 2, 1))
