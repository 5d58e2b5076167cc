from __future__ import annotations

import pytest
import torch

from regard.batching.batch import split_rows
from regard.batching.texts import StreamBatch


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_parts_take_turns_and_hold_all_rows(count: int) -> None:
    rows = torch.arange(20).view(5, 4)
    parts = split_rows(StreamBatch(rows, rows + 1), count)
    assert len(parts) == min(count, 5)
    for first, part in enumerate(parts):
        assert torch.equal(part.tokens, rows[first :: len(parts)])
        assert torch.equal(part.expected, rows[first :: len(parts)] + 1)
