"""LSTMs whose matrices are factors or groups (Kuchaiev & Ginsburg 2017), against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.models.inspection import parameter_count
from regard.recurrent.cells import FactorisedWeights, GroupedWeights, RecurrentStack
from regard.recurrent.equations import step

INPUTS, HIDDEN, RANK, GROUPS = 6, 8, 3, 2
KINDS = {"factors": {"rank": RANK}, "groups": {"groups": GROUPS}}


def stack(kind: str, *, layers: int = 1, bidirectional: bool = False) -> RecurrentStack:
    torch.manual_seed(3)
    return RecurrentStack(
        kind="lstm", input_dim=INPUTS, hidden=HIDDEN, layers=layers, bidirectional=bidirectional,
        **KINDS[kind],
    ).double()  # type: ignore[arg-type]  # fmt: skip


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def after_gates(gates: list[np.ndarray], c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, f, g, o = gates
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def factorised(cell: FactorisedWeights, x: np.ndarray) -> np.ndarray:
    """T = W_2 W_1 [x; h] + b (section 2.2)."""
    w_1 = np.concatenate([cell.input_factor.detach(), cell.state_factor.detach()], axis=1)
    w_2, b = cell.outer_factor.detach().numpy(), cell.bias.detach().numpy()
    h = c = np.zeros(HIDDEN)
    for each in x:
        gates = w_2 @ (w_1 @ np.concatenate([each, h])) + b
        h, c = after_gates(np.split(gates, 4), c)
    return h


def grouped(cell: GroupedWeights, x: np.ndarray) -> np.ndarray:
    """Each group is a small LSTM on its part of the input (section 2.3)."""
    u, w = cell.input_blocks.detach().numpy(), cell.state_blocks.detach().numpy()
    biases = cell.bias.detach().numpy().reshape(4, GROUPS, -1)
    found = []
    for group, part in enumerate(np.split(x, GROUPS, axis=1)):
        h = c = np.zeros(HIDDEN // GROUPS)
        for each in part:
            gates = u[group] @ each + w[group] @ h + biases[:, group].reshape(-1)
            h, c = after_gates(np.split(gates, 4), c)
        found.append(h)
    return np.concatenate(found)


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_equals_its_equations(kind: str) -> None:
    cells, inputs = stack(kind), torch.randn(2, 5, INPUTS, dtype=torch.float64)
    torch.nn.init.normal_(cells.cells[0].bias)
    found, _ = cells(inputs, cells.zero_state(2))
    equations = {"factors": factorised, "groups": grouped}[kind]
    for row in range(2):
        expected = equations(cells.cells[0], inputs[row].numpy())  # type: ignore[arg-type]
        np.testing.assert_allclose(found[row, -1].detach().numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_multiplied_out_are_the_same_cell(kind: str) -> None:
    cells, inputs = stack(kind), torch.randn(2, 3, INPUTS, dtype=torch.float64)
    state = tuple(part[0] for part in cells.zero_state(2))
    for time in range(3):
        state = step(cells.cells[0], inputs[:, time], state)
    found, _ = cells(inputs, cells.zero_state(2))
    torch.testing.assert_close(found[:, -1], state[0])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_right(kind: str) -> None:
    cells = stack(kind, bidirectional=True)
    inputs = torch.randn(2, 3, INPUTS, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([3, 2])

    def read(x: Tensor, *parameters: Tensor) -> Tensor:
        return cells.read_packed(x, lengths)[0]

    assert torch.autograd.gradcheck(read, (inputs, *cells.parameters()))


@pytest.mark.parametrize("kind", KINDS)
def test_padding_never_matters(kind: str) -> None:
    cells, inputs = stack(kind, layers=2), torch.randn(2, 5, INPUTS, dtype=torch.float64)
    outputs, _ = cells.read_packed(inputs, torch.tensor([5, 2]))
    alone, _ = cells(inputs[1:, :2], cells.zero_state(1))
    torch.testing.assert_close(outputs[1, :2], alone[0])
    assert (outputs[1, 2:] == 0).all()


def test_parameters_are_as_few_as_the_paper_says() -> None:
    biases = 4 * HIDDEN
    assert parameter_count(stack("factors")) == RANK * (INPUTS + HIDDEN + 4 * HIDDEN) + biases
    assert parameter_count(stack("groups")) == 4 * HIDDEN * (INPUTS + HIDDEN) // GROUPS + biases


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "gru", "rank": 2}, r'are for cell = "lstm" \(given: "gru"\)'),
        ({"kind": "lstm", "rank": 2, "groups": 2}, "exclude each other"),
        ({"kind": "lstm", "groups": 3}, r"hidden \(8\) must be divisible by cell_groups \(3\)"),
        ({"kind": "lstm", "groups": 4}, r"input width \(6\) must be divisible by cell_groups"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecurrentStack(input_dim=INPUTS, hidden=HIDDEN, **options)  # type: ignore[arg-type]
