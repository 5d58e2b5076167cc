from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.attention.masks import padding_mask
from regard.base.special_tokens import PAD
from regard.recurrent.cells import CELLS, RecurrentStack
from regard.recurrent.encoder import RecurrentEncoder


def encoder(kind: str, *, layers: int, bidirectional: bool) -> RecurrentEncoder:
    torch.manual_seed(1)
    return RecurrentEncoder(
        embedding=nn.Embedding(9, 5, padding_idx=PAD),
        stack=RecurrentStack(
            kind=kind, input_dim=5, hidden=8, layers=layers, bidirectional=bidirectional
        ),
    ).eval()


SOURCE = torch.tensor([[4, 5, 6, 3], [7, 3, 0, 0]])
MASK = padding_mask(torch.tensor([4, 2]), size=4)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
def test_the_summary_joins_the_last_states_of_both_directions(kind: str, layers: int) -> None:
    encoded = encoder(kind, layers=layers, bidirectional=True)(SOURCE, MASK)
    assert len(encoded.summary) == CELLS[kind].states
    assert all(part.shape == (layers, 2, 8) for part in encoded.summary)
    hidden = encoded.summary[0][-1]
    # What reads forward ends at the last token, what reads backward at the first.
    for row, last in enumerate([3, 1]):
        torch.testing.assert_close(hidden[row, :4], encoded.memory[row, last, :4])
        torch.testing.assert_close(hidden[row, 4:], encoded.memory[row, 0, 4:])


@pytest.mark.parametrize("kind", CELLS)
def test_the_summary_of_one_direction_is_its_last_state(kind: str) -> None:
    encoded = encoder(kind, layers=2, bidirectional=False)(SOURCE, MASK)
    assert encoded.summary[0].shape == (2, 2, 8)
    for row, last in enumerate([3, 1]):
        torch.testing.assert_close(encoded.summary[0][-1, row], encoded.memory[row, last])


def test_the_mask_is_handed_on_and_padding_holds_nothing() -> None:
    encoded = encoder("lstm", layers=1, bidirectional=True)(SOURCE, MASK)
    assert torch.equal(encoded.mask, MASK)
    assert (encoded.memory[~MASK] == 0).all()
