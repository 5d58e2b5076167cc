from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.models.inspection import parameter_count
from regard.recurrent.cells import CELLS, RecurrentStack

SHAPES = list(itertools.product(CELLS, [1, 2], [False, True]))


def stack(kind: str = "lstm", layers: int = 1, bidirectional: bool = False) -> RecurrentStack:
    torch.manual_seed(1)
    return RecurrentStack(
        kind=kind, input_dim=3, hidden=8, layers=layers, bidirectional=bidirectional
    ).eval()


# h = hidden, i = input: one bias a gate, and the GRU's candidate has one more.
COUNTS = {
    "tanh": lambda h, i: h * (h + i) + h,
    "gru": lambda h, i: 3 * h * (h + i) + 4 * h,
    "lstm": lambda h, i: 4 * h * (h + i) + 4 * h,
    "gated": lambda h, i: 2 * h * (h + i),
}


@pytest.mark.parametrize(("kind", "layers", "bidirectional"), SHAPES)
def test_parameters_are_counted_as_papers_do(kind: str, layers: int, bidirectional: bool) -> None:
    directions = 2 if bidirectional else 1
    hidden = 8 // directions
    first, next_ones = COUNTS[kind](hidden, 3), COUNTS[kind](hidden, 8)
    expected = directions * (first + (layers - 1) * next_ones)
    assert parameter_count(stack(kind, layers, bidirectional)) == expected


@settings(deadline=None, max_examples=15)
@given(
    shape=st.sampled_from(SHAPES),
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=5),
    seed=st.integers(0, 1000),
)
def test_padding_never_matters(shape: tuple[str, int, bool], lengths: list[int], seed: int) -> None:
    cells = stack(*shape)
    torch.manual_seed(seed)
    inputs = torch.randn(len(lengths), max(lengths) + 2, 3)
    with torch.no_grad():
        outputs, last = cells.read_packed(inputs, torch.tensor(lengths))
        for row, length in enumerate(lengths):
            alone, alone_last = cells(inputs[row : row + 1, :length], cells.zero_state(1))
            torch.testing.assert_close(outputs[row, :length], alone[0])
            assert (outputs[row, length:] == 0).all()
            for part, wanted in zip(last, alone_last, strict=True):
                torch.testing.assert_close(part[:, row], wanted[:, 0])


@pytest.mark.parametrize("kind", CELLS)
def test_reading_in_two_parts_equals_reading_at_once(kind: str) -> None:
    cells = stack(kind, layers=2)
    inputs = torch.randn(2, 5, 3)
    with torch.no_grad():
        whole, last = cells(inputs, cells.zero_state(2))
        first, between = cells(inputs[:, :2], cells.zero_state(2))
        second, end = cells(inputs[:, 2:], between)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    for part, wanted in zip(end, last, strict=True):
        torch.testing.assert_close(part, wanted)


def test_an_lstm_remembers_at_first() -> None:
    bias = dict(stack("lstm").named_parameters())["weights.0.bias"]
    assert bias[8:16].tolist() == [1.0] * 8  # the forget gate
    assert bias[:8].abs().sum() == bias[16:].abs().sum() == 0


def test_dropout_stands_between_layers_and_only_in_training() -> None:
    torch.manual_seed(1)
    cells = RecurrentStack(kind="gru", input_dim=3, hidden=8, layers=2, dropout=0.5)
    inputs, zero = torch.randn(2, 4, 3), cells.zero_state(2)
    assert not torch.equal(cells(inputs, zero)[0], cells(inputs, zero)[0])
    cells.eval()
    assert torch.equal(cells(inputs, zero)[0], cells(inputs, zero)[0])


def test_an_odd_width_cannot_be_read_in_both_directions() -> None:
    with pytest.raises(ValueError, match=r"hidden \(7\) must be even"):
        RecurrentStack(kind="gru", input_dim=3, hidden=7, bidirectional=True)
