from __future__ import annotations

from itertools import islice

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.batching.order import BatchPosition
from regard.tasks.forecasting.data import WindowBatch, iterate_windows


def windows(count: int) -> WindowBatch:
    """Windows of three values whose first tells which window it is."""
    numbers = torch.arange(float(count))
    return WindowBatch(numbers[:, None].expand(-1, 3), numbers[:, None])


@settings(deadline=None, max_examples=25)
@given(count=st.integers(1, 40), size=st.integers(1, 9), seed=st.integers(0, 9))
def test_an_epoch_holds_every_window_once_and_can_be_resumed(
    count: int, size: int, seed: int
) -> None:
    batches = -(-count // size)
    source = windows(count)
    whole = list(
        islice(
            iterate_windows(source, batch_size=size, seed=seed, start=BatchPosition()), 2 * batches
        )
    )
    first_epoch = torch.cat([batch.inputs[:, 0] for _, batch in whole[:batches]])
    assert sorted(first_epoch.tolist()) == list(range(count))
    assert whole[batches - 1][0] == BatchPosition(1, 0)
    assert all(len(batch.inputs) <= size for _, batch in whole)
    where = len(whole) // 2
    rest = iterate_windows(source, batch_size=size, seed=seed, start=whole[where - 1][0])
    for (after, batch), (other_after, other) in zip(whole[where:], rest, strict=False):
        assert after == other_after
        assert torch.equal(batch.inputs, other.inputs)


def test_a_batch_counts_its_values_and_has_no_padding() -> None:
    batch = WindowBatch(torch.zeros(4, 3), torch.zeros(4, 2))
    assert batch.target_tokens == 8
    assert batch.padding_share == 0.0
