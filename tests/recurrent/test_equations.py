from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.recurrent.cells import CELLS, RecurrentStack
from regard.recurrent.equations import EQUATIONS, step
from regard.recurrent.kernels import STEPS, read_steps


def stack(kind: str, *, bidirectional: bool = False) -> RecurrentStack:
    torch.manual_seed(1)
    made = RecurrentStack(kind=kind, input_dim=3, hidden=8, bidirectional=bidirectional)
    with torch.no_grad():
        for parameter in made.parameters():  # biases too, so that a misplaced one shows
            parameter.uniform_(-1, 1)
    return made


def test_every_cell_has_equations_and_a_step() -> None:
    assert EQUATIONS.keys() == STEPS.keys() == CELLS.keys()


@settings(deadline=None, max_examples=12)
@given(kind=st.sampled_from(list(CELLS)), time=st.integers(1, 6), seed=st.integers(0, 99))
def test_the_equations_equal_the_kernels(kind: str, time: int, seed: int) -> None:
    cells = stack(kind)
    torch.manual_seed(seed)
    inputs = torch.randn(2, time, 3)
    state = tuple(torch.randn_like(part) for part in cells.zero_state(2))
    outputs, last = cells(inputs, state)
    now = tuple(part[0] for part in state)
    for position in range(time):
        now = step(cells.cells[0], inputs[:, position], now)
        torch.testing.assert_close(now[0], outputs[:, position])
    for part, wanted in zip(now, last, strict=True):
        torch.testing.assert_close(part, wanted[0])


@pytest.mark.parametrize("kind", CELLS)
def test_loops_equal_the_equations_with_all_gradients(kind: str) -> None:
    cells = stack(kind)
    torch.manual_seed(2)
    inputs = torch.randn(2, 4, 3, requires_grad=True)
    start = tuple(torch.randn(2, 8, requires_grad=True) for _ in range(CELLS[kind].states))
    leaves = [inputs, *start, *cells.parameters()]
    cell = cells.cells[0]

    outputs, last = read_steps(cell.recurrence(), cell.project(inputs), start)
    found = torch.autograd.grad((outputs.sin().sum() + last[-1].cos().sum()), leaves)
    now, states = start, []
    for position in range(4):
        now = step(cell, inputs[:, position], now)
        states.append(now[0])
    expected_outputs = torch.stack(states, dim=1)
    torch.testing.assert_close(outputs, expected_outputs)
    expected = torch.autograd.grad((expected_outputs.sin().sum() + now[-1].cos().sum()), leaves)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
