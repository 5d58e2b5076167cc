from __future__ import annotations

import torch

from regard.decoding.search import least_lengths, length_limits


def test_a_limit_depends_on_its_own_sentence_alone() -> None:
    sources = torch.tensor([5, 1, 3])
    assert length_limits(sources, ratio=1.5, extra=2).tolist() == [9, 3, 6]


def test_a_limit_can_be_a_number_too() -> None:
    sources = torch.tensor([5, 1, 3])
    assert length_limits(sources, ratio=1.5, extra=2, most=5).tolist() == [6, 3, 6]


def test_the_least_length_is_a_number_or_a_share_of_the_source_without_its_end() -> None:
    sources = torch.tensor([6, 2, 4])
    assert least_lengths(sources, ratio=0.5, least=0).tolist() == [4, 2, 3]
    assert least_lengths(sources, ratio=0.5, least=2).tolist() == [4, 3, 3]
