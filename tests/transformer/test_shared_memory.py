from __future__ import annotations

import pytest
import torch

from regard.attention.masks import memory_penalties
from regard.attention.multihead import MultiHeadAttention
from regard.attention.past import owners_of
from regard.transformer.decoder import cross_attend

# Name of the case: the rows that are kept, the sentences (None: all) and the width they then have.
CASES: dict[str, tuple[list[int], list[int] | None, int]] = {
    "all, reordered within sentences": ([1, 0, 3, 3, 4, 5], None, 2),
    "one sentence leaves": ([0, 1, 5, 4], [0, 2], 2),
    "sentences get wider": ([0, 0, 1, 2, 3, 2, 5, 5, 4], None, 3),
    "sentences in another order": ([2, 3, 0, 1], [1, 0], 2),
    "unequally many rows": ([0, 1, 2], [0, 0, 1], 1),
    "none": ([], [], 1),
}


@pytest.mark.parametrize("case", CASES)
def test_whose_rows_are_kept(case: str) -> None:
    rows, wanted, width = CASES[case]
    found = owners_of(torch.tensor(rows, dtype=torch.long), width=2, sentences=3)
    assert (None if found.sentences is None else found.sentences.tolist()) == wanted
    assert found.width == width


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("with_weights", [False, True])
def test_one_memory_for_many_rows_is_like_a_copy_for_each(width: int, with_weights: bool) -> None:
    torch.manual_seed(2)
    attention = MultiHeadAttention(model_dim=8, heads=2).eval()
    mask = torch.tensor([[True, True, False], [True, True, True]])
    penalties = memory_penalties(mask, dtype=torch.float32)
    memory = attention.memory(torch.randn(2, 3, 8))
    inputs = torch.randn(2 * width, 1, 8)
    found = cross_attend(attention, inputs, memory, penalties, with_weights=with_weights)
    assert penalties is not None
    copies = type(memory)(
        *(part.repeat_interleave(width, 0) for part in (memory.keys, memory.values))
    )
    wanted = attention.cross(
        inputs, copies, penalties.repeat_interleave(width, 0), with_weights=with_weights
    )
    assert torch.allclose(found.context, wanted.context, atol=1e-6)
    assert (found.weights is None) == (not with_weights)
    if found.weights is not None and wanted.weights is not None:
        assert torch.allclose(found.weights, wanted.weights, atol=1e-6)
