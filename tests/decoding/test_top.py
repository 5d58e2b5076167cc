from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.decoding.search import top_of_rows


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 4),
    columns=st.integers(1, 1500),
    count=st.integers(1, 12),
    possible=st.floats(0.0, 1.0),
)
def test_the_best_are_those_that_sorting_finds(
    seed: int, rows: int, columns: int, count: int, possible: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, generator=generator)
    values[torch.rand(values.shape, generator=generator) > possible] = -torch.inf
    found, places = top_of_rows(values, count)
    wanted = values.sort(dim=1, descending=True).values[:, :count]
    assert torch.equal(found, wanted)
    assert torch.equal(values.gather(1, places), found)
    assert all(len(set(row)) == len(row) for row in places.tolist())
