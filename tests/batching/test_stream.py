from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RunError
from regard.batching.order import BatchPosition
from regard.batching.texts import WindowOrder, all_windows, iterate_stream, permuted
from regard.corpora.running_text import TokenFile, write_tokens


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> TokenFile:
    """The ids 0, 1, 2, ... 100, so that a place can be told from its id."""
    path = tmp_path_factory.mktemp("tokens") / "numbers"
    return write_tokens(path, ["x"], encode=lambda _: range(101), vocab=101, digest="")


@settings(deadline=None, max_examples=60)
@given(count=st.integers(1, 600), seed=st.integers(0, 999))
def test_a_permutation_takes_every_place_once(count: int, seed: int) -> None:
    keys = np.random.PCG64(seed).random_raw(4)
    found = permuted(np.arange(count, dtype=np.uint64), count=count, keys=keys)
    assert sorted(found.tolist()) == list(range(count))
    if count > 100:
        assert (found == np.arange(count)).sum() < 20


@settings(deadline=None, max_examples=40)
@given(
    tokens=st.integers(8, 200),
    context=st.integers(1, 7),
    batch_size=st.integers(1, 9),
    epoch=st.integers(0, 5),
)
def test_the_windows_of_an_epoch_lie_side_by_side(
    tokens: int, context: int, batch_size: int, epoch: int
) -> None:
    order = WindowOrder(tokens, context=context, batch_size=batch_size, seed=3)
    batches = [order.starts(epoch, number) for number in range(order.batches(epoch))]
    assert all(len(batch) == batch_size for batch in batches[:-1])
    starts = sorted(np.concatenate(batches).tolist())
    assert starts == list(range(starts[0], starts[-1] + 1, context))
    assert 0 <= starts[0] < context
    assert tokens - context <= starts[-1] + context < tokens


def test_a_stream_resumes_exactly(numbers: TokenFile) -> None:
    order = WindowOrder(len(numbers), context=6, batch_size=4, seed=1)
    whole = list(islice(iterate_stream(numbers, order, start=BatchPosition()), 12))
    for index in (0, 3, 7):
        resumed = list(islice(iterate_stream(numbers, order, start=whole[index][0]), 4))
        for (after, batch), (place, expected) in zip(resumed, whole[index + 1 :], strict=False):
            assert after == place
            assert batch.tokens.equal(expected.tokens)
    assert {position.epoch for position, _ in whole} >= {0, 1, 2}


def test_each_symbol_is_followed_by_the_next(numbers: TokenFile) -> None:
    order = WindowOrder(len(numbers), context=6, batch_size=4, seed=1)
    _, batch = next(iterate_stream(numbers, order, start=BatchPosition()))
    assert batch.expected.equal(batch.tokens + 1)
    assert (batch.target_tokens, batch.padding_share) == (24, 0.0)
    assert batch.mask.all()


@pytest.mark.parametrize("context", [1, 7, 10, 100, 500])
def test_validation_predicts_every_symbol_but_the_first_once(
    numbers: TokenFile, context: int
) -> None:
    batches = list(all_windows(numbers, context=context, tokens=30))
    seen = torch.cat([batch.expected.flatten() for batch in batches])
    assert seen.tolist() == list(range(1, 101))


def test_what_does_not_fit(numbers: TokenFile) -> None:
    with pytest.raises(ValueError, match="5 tokens have no window of 5"):
        WindowOrder(5, context=5, batch_size=1, seed=1)
    order = WindowOrder(len(numbers), context=6, batch_size=4, seed=1)
    with pytest.raises(RunError, match="cannot continue at batch 99 of epoch 0"):
        next(iterate_stream(numbers, order, start=BatchPosition(0, 99)))


def test_a_part_of_a_text_is_always_the_same_windows(numbers: TokenFile) -> None:
    def seen(**chosen: int) -> list[int]:
        batches = all_windows(numbers, context=7, tokens=21, **chosen)
        return [int(each) for batch in batches for each in batch.expected.flatten()]

    some = seen(most=20, seed=1)
    assert len(some) == 21
    assert some == seen(most=20, seed=1) != seen(most=20, seed=2)
    assert set(some) < set(seen())
    assert seen(most=100) == seen(most=98) == seen()
    assert len(seen()) == 100
