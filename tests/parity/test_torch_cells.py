from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.recurrent.cells import CELLS, CellWeights, RecurrentStack

TORCH = {"tanh": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
SHAPES = list(itertools.product(TORCH, [1, 2], [False, True]))
INPUT, HIDDEN = 3, 8


def twins(kind: str, layers: int, bidirectional: bool) -> tuple[RecurrentStack, nn.RNNBase]:
    """Return our stack and torch's module with the same weights."""
    torch.manual_seed(1)
    ours = RecurrentStack(
        kind=kind, input_dim=INPUT, hidden=HIDDEN, layers=layers, bidirectional=bidirectional
    )
    with torch.no_grad():
        for parameter in ours.parameters():  # biases too, so that a misplaced one shows
            parameter.uniform_(-0.5, 0.5)
    theirs = TORCH[kind](
        INPUT, ours.cell_hidden, layers, batch_first=True, bidirectional=bidirectional
    )
    with torch.no_grad():
        for cell, names in zip(ours.weights, theirs.all_weights, strict=True):
            assert isinstance(cell, CellWeights)
            for parameter, value in zip(names, cell.flat(), strict=True):
                parameter.copy_(value)
    return ours, theirs


def as_tuple(state: torch.Tensor | tuple[torch.Tensor, ...]) -> Iterator[torch.Tensor]:
    return iter(state if isinstance(state, tuple) else (state,))


def test_every_kind_is_compared() -> None:
    # torch has no single-gate unit; it is held against its equations
    assert TORCH.keys() == CELLS.keys() - {"gated"}


@pytest.mark.parametrize(("kind", "layers", "bidirectional"), SHAPES)
def test_a_stack_equals_torch(kind: str, layers: int, bidirectional: bool) -> None:
    ours, theirs = twins(kind, layers, bidirectional)
    inputs = torch.randn(4, 6, INPUT)
    outputs, last = ours(inputs, ours.zero_state(4))
    expected, expected_last = theirs(inputs)
    torch.testing.assert_close(outputs, expected)
    for part, wanted in zip(last, as_tuple(expected_last), strict=True):
        torch.testing.assert_close(part, wanted)


@pytest.mark.parametrize(("kind", "layers", "bidirectional"), SHAPES)
def test_packed_reading_equals_torch(kind: str, layers: int, bidirectional: bool) -> None:
    ours, theirs = twins(kind, layers, bidirectional)
    inputs, lengths = torch.randn(4, 6, INPUT), torch.tensor([2, 6, 1, 4])
    outputs, last = ours.read_packed(inputs, lengths)
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    expected, expected_last = theirs(packed)
    torch.testing.assert_close(outputs, pad_packed_sequence(expected, batch_first=True)[0])
    for part, wanted in zip(last, as_tuple(expected_last), strict=True):
        torch.testing.assert_close(part, wanted)


@pytest.mark.parametrize("kind", ["tanh", "lstm"])
def test_the_second_bias_of_torch_is_zero(kind: str) -> None:
    ours, _ = twins(kind, 1, False)
    cell = ours.weights[0]
    assert isinstance(cell, CellWeights)
    assert cell.flat()[3].abs().sum() == 0


@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_gradients_equal_torch(bidirectional: bool) -> None:
    ours, theirs = twins("lstm", 2, bidirectional)
    lengths = torch.tensor([2, 6, 1, 4])
    mine, other = (torch.randn(4, 6, INPUT).requires_grad_() for _ in range(2))
    with torch.no_grad():
        other.copy_(mine)
    outputs, last = ours.read_packed(mine, lengths)
    packed = pack_padded_sequence(other, lengths, batch_first=True, enforce_sorted=False)
    expected, expected_last = theirs(packed)
    padded, _ = pad_packed_sequence(expected, batch_first=True)
    for result, parts in ((outputs, last), (padded, expected_last)):
        (result.sin().sum() + sum(part.cos().sum() for part in parts)).backward()
    torch.testing.assert_close(mine.grad, other.grad)
    for cell, names in zip(ours.cells, theirs.all_weights, strict=True):
        for parameter, wanted in zip(cell.flat()[:3], names, strict=False):
            torch.testing.assert_close(parameter.grad, wanted.grad)
