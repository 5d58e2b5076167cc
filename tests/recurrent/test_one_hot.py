from __future__ import annotations

import torch

from regard.recurrent.encoder import OneHot


def test_tokens_become_rows_of_the_identity() -> None:
    one_hot = OneHot(vocab=4)
    assert one_hot(torch.tensor([[2, 0]])).tolist() == [[[0, 0, 1, 0], [1, 0, 0, 0]]]
    assert not list(one_hot.parameters())
    assert not one_hot.state_dict()
