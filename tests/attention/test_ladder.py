from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard.attention.ladder import (
    RUNGS,
    FreeCandidatesRung,
    GatedRung,
    KeyValueRung,
    Rung,
    gated_recurrence,
    unrolled_sum,
    unrolled_weights,
)
from regard.attention.positions import LearnedPositions, Sinusoids

WIDTH, HIDDEN = 6, 8


def build(rung: Rung) -> nn.Module:
    torch.manual_seed(rung.number)
    return rung.build(input_dim=WIDTH, hidden=HIDDEN)


@settings(deadline=None, max_examples=30)
@given(time=st.integers(1, 40), hidden=st.integers(1, 6), seed=st.integers(0, 999))
def test_the_unrolled_sum_is_the_recurrence(time: int, hidden: int, seed: int) -> None:
    torch.manual_seed(seed)
    gates = torch.sigmoid(3 * torch.randn(2, time, hidden, dtype=torch.float64))
    candidates = torch.randn(2, time, hidden, dtype=torch.float64)
    initial = torch.randn(2, hidden, dtype=torch.float64)
    torch.testing.assert_close(
        unrolled_sum(gates, candidates, initial), gated_recurrence(gates, candidates, initial)
    )


def test_the_unrolled_weights_and_that_of_the_beginning_sum_to_one() -> None:
    gates = torch.sigmoid(torch.randn(2, 9, 4, dtype=torch.float64))
    total = unrolled_weights(gates).sum(2) + gates.cumprod(1)
    torch.testing.assert_close(total, torch.ones_like(total))


def test_gates_of_exactly_zero_and_one_forget_and_keep_everything() -> None:
    torch.manual_seed(4)
    gates = torch.tensor([0.5, 0.0, 1.0, 0.0, 0.25])[None, :, None].double().requires_grad_()
    candidates = torch.randn(1, 5, 1, dtype=torch.float64)
    initial = torch.randn(1, 1, dtype=torch.float64)
    weights = unrolled_weights(gates)[0, :, :, 0]
    assert weights[2].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert weights[4].tolist() == [0.0, 0.0, 0.0, 0.25, 0.75]
    summed = unrolled_sum(gates, candidates, initial)
    step_by_step = gated_recurrence(gates, candidates, initial)
    torch.testing.assert_close(summed, step_by_step)
    (found,) = torch.autograd.grad(summed.sum(), gates)
    (expected,) = torch.autograd.grad(step_by_step.sum(), gates)
    torch.testing.assert_close(found, expected)


def test_the_unrolled_weights_are_the_product_of_the_formula() -> None:
    gates = torch.sigmoid(torch.randn(1, 5, 1, dtype=torch.float64))
    weights = unrolled_weights(gates)[0, :, :, 0]
    u = gates[0, :, 0]
    for t in range(5):
        for i in range(5):
            expected = u[i + 1 : t + 1].prod() * (1 - u[i]) if i <= t else torch.tensor(0.0)
            assert weights[t, i].item() == pytest.approx(expected.item())


def test_the_gated_rung_is_its_own_sum() -> None:
    rung = GatedRung(input_dim=WIDTH, hidden=HIDDEN).double()
    inputs = torch.randn(2, 7, WIDTH, dtype=torch.float64)
    states = rung(inputs).context
    before = torch.cat([torch.zeros(2, 1, HIDDEN, dtype=torch.float64), states[:, :-1]], 1)
    gate, candidate = (rung.of_input(inputs) + rung.of_state(before)).chunk(2, -1)
    summed = unrolled_sum(torch.sigmoid(gate), torch.tanh(candidate), before[:, 0])
    torch.testing.assert_close(states, summed)


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_every_rung_keeps_the_future_out(rung: Rung) -> None:
    model = build(rung)
    inputs = torch.randn(3, 8, WIDTH)
    changed = inputs.clone()
    changed[:, 5:] = torch.randn(3, 3, WIDTH)
    torch.testing.assert_close(model(inputs).context[:, :5], model(changed).context[:, :5])


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_every_rung_gives_weights_of_the_items_before(rung: Rung) -> None:
    context, weights = build(rung)(torch.randn(2, 6, WIDTH), with_weights=True)
    assert context.shape == (2, 6, HIDDEN)
    assert weights.shape == (2, 6, 6)
    assert (weights.triu(1) == 0).all()
    if rung.number > 0:  # the recurrence leaves some weight to h_0
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 6))
    assert build(rung)(torch.randn(2, 6, WIDTH)).weights is None


def permuted_past(inputs: torch.Tensor) -> torch.Tensor:
    """Return the same items with all but the last in another order."""
    return torch.cat([inputs[:, :-1].flip(1), inputs[:, -1:]], dim=1)


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_the_order_of_earlier_items_matters_only_to_recurrence_and_positions(rung: Rung) -> None:
    model = build(rung)
    inputs = torch.randn(3, 8, WIDTH)
    here, there = model(inputs).context[:, -1], model(permuted_past(inputs)).context[:, -1]
    same = torch.allclose(here, there, atol=1e-6)
    assert same == (rung.number in (2, 3, 4))


UNMASKED = {
    "free candidates": (FreeCandidatesRung(input_dim=WIDTH, hidden=HIDDEN, causal=False), True),
    "keys and values": (KeyValueRung(input_dim=WIDTH, hidden=HIDDEN, causal=False), True),
    "heads": (KeyValueRung(input_dim=WIDTH, hidden=HIDDEN, heads=4, causal=False), True),
    "sinusoidal": (
        KeyValueRung(
            input_dim=WIDTH, hidden=HIDDEN, heads=4, positions=Sinusoids(HIDDEN), causal=False
        ),
        False,
    ),
    "learned": (
        KeyValueRung(
            input_dim=WIDTH,
            hidden=HIDDEN,
            heads=4,
            positions=LearnedPositions(HIDDEN, max_length=9),
            causal=False,
        ),
        False,
    ),
}


@pytest.mark.parametrize("name", UNMASKED)
def test_unmasked_self_attention_is_equivariant_without_positions(name: str) -> None:
    model, equivariant = UNMASKED[name]
    inputs, order = torch.randn(2, 9, WIDTH), torch.randperm(9)
    moved = model(inputs[:, order]).context
    assert torch.allclose(moved, model(inputs).context[:, order], atol=1e-6) == equivariant


def test_heads_must_share_the_width() -> None:
    with pytest.raises(ValueError, match=r"hidden \(8\) must be divisible by heads \(3\)"):
        KeyValueRung(input_dim=2, hidden=8, heads=3)
