from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.recurrent.cells import CELLS
from regard.studies.gradients import NETWORKS, TOKENS, Rememberer, draw, gradient_norms, measure

SEED = torch.Generator


def test_the_tanh_networks_gradient_is_the_product_of_its_jacobians() -> None:
    """d loss / d h_t = (prod_{k=1..n} U^T diag(tanh'(a_{t+k}))) d loss / d h_{t+n}."""
    torch.manual_seed(4)
    model = Rememberer(cell="tanh", attends=False).double()
    tokens, answers = draw(1, 12, SEED().manual_seed(1))
    cell = model.stack.weights[0]
    recurrent = cell.state_weights  # W of h_t = tanh(U x_t + W h_{t-1} + b)

    states, h = [], torch.zeros(recurrent.shape[0], dtype=torch.float64)
    for x in model.embedding(tokens)[0]:
        h = torch.tanh(cell.input_weights @ x + recurrent @ h + cell.bias)
        states.append(h)
    last = states[-1].detach().requires_grad_()
    loss = nn.functional.cross_entropy(model.answer(last)[None], answers)
    (gradient,) = torch.autograd.grad(loss, last)
    expected = []
    for state in reversed(states):
        expected.append(gradient.norm().item())
        slope = 1 - state**2  # tanh'(a)
        gradient = recurrent.T @ (slope * gradient)
    assert gradient_norms(model, tokens, answers) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", NETWORKS)
def test_step_by_step_is_the_same_network(name: str) -> None:
    cell, attends = NETWORKS[name]
    if cell not in CELLS:
        pytest.skip(f"there is no cell {cell}")
    model = Rememberer(cell=cell, attends=attends)
    tokens, _ = draw(3, 9, SEED().manual_seed(2))
    logits, states = model.step_by_step(tokens)
    torch.testing.assert_close(logits, model(tokens))
    assert len(states) == 9


def test_an_lstms_memory_counts_as_state() -> None:
    model = Rememberer(cell="lstm", attends=False)
    tokens, answers = draw(2, 5, SEED().manual_seed(3))
    logits, states = model.step_by_step(tokens)
    loss = nn.functional.cross_entropy(logits, answers, reduction="sum")
    hidden, memory = torch.autograd.grad(loss, states[1], retain_graph=True)
    both = (hidden[0].norm(dim=-1) ** 2 + memory[0].norm(dim=-1) ** 2).sqrt().mean()
    assert gradient_norms(model, tokens, answers)[3] == pytest.approx(both.item(), rel=1e-5)


def test_attention_reaches_what_recurrence_has_lost() -> None:
    reaches = {
        (reach.name, reach.trained): reach
        for reach in measure(length=30, steps=2, names=["tanh RNN", "attention"])
    }
    assert set(reaches) == {(n, t) for n in ("tanh RNN", "attention") for t in (False, True)}
    plain, attending = (reaches[name, False].norms for name in ("tanh RNN", "attention"))
    assert len(plain) == len(attending) == 30
    assert plain[-1] < 1e-4 * plain[0]
    assert attending[-1] > 100 * plain[-1]


def test_the_marked_symbol_is_the_answer() -> None:
    tokens, answers = draw(50, 7, SEED().manual_seed(5))
    marked = tokens >= TOKENS
    assert (marked.sum(1) == 1).all()
    assert torch.equal(tokens[marked] - TOKENS, answers)
