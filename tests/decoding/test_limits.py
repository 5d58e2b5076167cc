from __future__ import annotations

import torch

from regard.attention.masks import padding_mask
from regard.decoding.limits import length_limits


def test_a_limit_depends_on_its_own_sentence_alone() -> None:
    for size in (5, 9):
        mask = padding_mask(torch.tensor([5, 1, 3]), size=size)
        assert length_limits(mask, ratio=1.5, extra=2).tolist() == [9, 3, 6]
