from __future__ import annotations

import torch

from regard.attention.masks import causal_mask, padding_mask


def test_padding_mask_is_true_where_a_symbol_is() -> None:
    assert padding_mask(torch.tensor([3, 0, 1]), size=3).tolist() == [
        [True, True, True],
        [False, False, False],
        [True, False, False],
    ]


def test_causal_mask_shows_the_past_and_the_present() -> None:
    assert causal_mask(3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
