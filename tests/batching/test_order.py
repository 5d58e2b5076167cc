from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention.edges import Edges
from regard.attention.graph import GraphInput
from regard.base.errors import RunError, SettingsError
from regard.batching import order as order_module
from regard.batching.batch import Example
from regard.batching.neighbours import NodeBatch, iterate_nodes
from regard.batching.order import (
    BatchOrder,
    BatchPosition,
    Epoch,
    endless,
    iterate,
    iterate_rows,
)
from regard.batching.texts import WindowOrder, iterate_stream
from regard.corpora.running_text import TokenFile
from regard.tasks.forecasting.data import WindowBatch, iterate_windows

LENGTHS = st.lists(
    st.tuples(st.integers(min_value=1, max_value=40), st.integers(min_value=1, max_value=40)),
    min_size=1,
    max_size=80,
)


def typical(count: int) -> list[tuple[int, int]]:
    """Lengths as in real corpora: log-normal, the target about as long as the source."""
    random = np.random.default_rng(0)
    source = np.clip(random.lognormal(3, 0.5, count), 2, 200)
    target = np.maximum(2, source * random.normal(1, 0.12, count))
    return [(int(one), int(other)) for one, other in zip(source, target, strict=True)]


def positions(batch: list[int], lengths: list[tuple[int, int]]) -> int:
    """How many positions a batch takes when padded."""
    sources, targets = zip(*(lengths[index] for index in batch), strict=True)
    return len(batch) * (max(sources) + max(targets))


@settings(deadline=None, max_examples=100)
@given(
    lengths=LENGTHS,
    token_budget=st.integers(min_value=1, max_value=300),
    seed=st.integers(min_value=0, max_value=2**63),
    epoch=st.integers(min_value=0, max_value=5),
    short_first=st.booleans(),
    pool=st.sampled_from([7, 1000]),
)
def test_every_example_once_within_the_budget(
    lengths: list[tuple[int, int]],
    token_budget: int,
    seed: int,
    epoch: int,
    short_first: bool,
    pool: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_module, "POOL", pool)
        order = BatchOrder(lengths, token_budget=token_budget, seed=seed, short_first=short_first)
        batches = order.batches(epoch)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or positions(batch, lengths) <= token_budget


def test_a_function_of_seed_and_epoch() -> None:
    lengths = typical(500)

    def batches(seed: int, epoch: int) -> list[list[int]]:
        return BatchOrder(lengths, token_budget=800, seed=seed).batches(epoch)

    assert batches(1, 0) == batches(1, 0)
    assert batches(1, 3) == batches(1, 3)
    assert batches(1, 0) != batches(1, 1)
    assert batches(1, 0) != batches(2, 0)
    # Not only the order of the batches differs, but also who is with whom.
    assert {frozenset(batch) for batch in batches(1, 0)} != {
        frozenset(batch) for batch in batches(1, 1)
    }


def test_the_order_is_the_same_on_every_platform() -> None:
    order = BatchOrder([(3, 3)] * 8, token_budget=18, seed=5)
    assert order.batches(2) == [[0, 1, 5], [4, 7, 6], [2, 3]]


def test_short_sentences_first_in_the_first_epoch_only() -> None:
    lengths = typical(500)
    order = BatchOrder(lengths, token_budget=800, seed=1, short_first=True)

    def longest(epoch: int) -> list[int]:
        return [max(max(lengths[index]) for index in batch) for batch in order.batches(epoch)]

    assert longest(0) == sorted(longest(0))
    assert longest(1) != sorted(longest(1))
    assert order.batches(1) == BatchOrder(lengths, token_budget=800, seed=1).batches(1)


def test_little_padding_on_typical_data() -> None:
    lengths = typical(20_000)
    batches = BatchOrder(lengths, token_budget=4000, seed=1).batches(0)
    real = sum(sum(pair) for pair in lengths)
    assert 1 - real / sum(positions(batch, lengths) for batch in batches) < 0.05


@pytest.mark.parametrize(
    ("lengths", "token_budget", "seed", "message"),
    [
        pytest.param([(1, 1)], 0, 1, r"token_budget \(0\) must be at least 1", id="budget"),
        pytest.param([(1, 1)], 9, -1, r"seed \(-1\) must not be negative", id="seed"),
        pytest.param([], 9, 1, "there is nothing to train on", id="no examples"),
    ],
)
def test_settings_that_cannot_be_used(
    lengths: list[tuple[int, int]], token_budget: int, seed: int, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        BatchOrder(lengths, token_budget=token_budget, seed=seed)


def no_edges() -> tuple[Edges, torch.Tensor]:
    none = torch.zeros(0, dtype=torch.int64)
    return Edges.sort(none, none, sources=4, targets=4), none


EXAMPLES = [Example((4,) * (number % 7), (5 + number,)) for number in range(30)]


def small_order() -> BatchOrder:
    return BatchOrder([example.lengths for example in EXAMPLES], token_budget=40, seed=3)


def test_a_resumed_iteration_continues_exactly() -> None:
    order = small_order()
    per_epoch = len(order.batches(0))
    through = list(islice(iterate(order, EXAMPLES, BatchPosition()), 3 * per_epoch))
    for stop in range(len(through) - 1):
        stored = BatchPosition(**json.loads(json.dumps(asdict(through[stop][0]))))
        position, batch = next(iterate(small_order(), EXAMPLES, stored))
        assert position == through[stop + 1][0]
        assert torch.equal(batch.target_output, through[stop + 1][1].target_output)
        assert torch.equal(batch.source, through[stop + 1][1].source)


def test_the_position_after_the_last_batch_is_the_next_epoch() -> None:
    order = small_order()
    per_epoch = len(order.batches(0))
    after = [
        position for position, _ in islice(iterate(order, EXAMPLES, BatchPosition()), per_epoch)
    ]
    assert after[0] == BatchPosition(0, 1)
    assert after[-1] == BatchPosition(1, 0)
    first = next(iterate(order, EXAMPLES, BatchPosition(1, 0)))
    same = next(iterate(order, EXAMPLES, BatchPosition(0, per_epoch)))
    assert torch.equal(first[1].source, same[1].source)


WINDOWS = WindowBatch(torch.zeros(9, 2), torch.zeros(9, 1))
NODES = NodeBatch(GraphInput(torch.zeros(4, 1), *no_edges()), torch.arange(4), torch.arange(4))


def windows_from(start: BatchPosition) -> Iterator[Any]:
    return iterate_windows(WINDOWS, batch_size=4, seed=1, start=start)


def nodes_from(start: BatchPosition, batch_nodes: int | None = 2) -> Iterator[Any]:
    return iterate_nodes(NODES, batch_nodes=batch_nodes, neighbours=1, hops=1, seed=1, start=start)


def stream_from(start: BatchPosition) -> Iterator[Any]:
    order = WindowOrder(40, context=6, batch_size=4, seed=1)
    return iterate_stream(TokenFile(Path("none"), 40, 40, 40, 2, ""), order, start=start)


# Every way through training data; none of them may skip a place that is not there.
WAYS = {
    "pairs": lambda start: iterate(small_order(), EXAMPLES, start),
    "pairs drawn anew": lambda start: iterate(small_order(), EXAMPLES, start, redraw=same_again),
    "rows": lambda start: iterate_rows(small_order(), list, start=start),
    "windows of a series": windows_from,
    "windows of a text": stream_from,
    "all nodes": partial(nodes_from, batch_nodes=None),
    "some nodes": nodes_from,
}


def same_again(epoch: int, first: int, batches: Any) -> Any:
    return [[EXAMPLES[row] for row in rows] for rows in batches]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("place", "message"),
    [
        (BatchPosition(1, 99), r"batch 99 of epoch 1, which has \d+ .* train into another folder"),
        (BatchPosition(0, -1), r"batch -1 of epoch 0: the checkpoint is damaged. Delete it"),
        (BatchPosition(-1, 0), r"batch 0 of epoch -1: the checkpoint is damaged. Delete it"),
    ],
)
def test_a_position_that_the_data_does_not_have_is_refused(
    way: Any, place: BatchPosition, message: str
) -> None:
    with pytest.raises(RunError, match=f"cannot continue at {message}"):
        next(way(place))


def test_an_epoch_asks_for_each_batch_once_and_in_order() -> None:
    asked: list[tuple[int, int]] = []

    def epoch_of(number: int) -> Epoch[int]:
        return Epoch(number + 1, lambda batch: asked.append((number, batch)) or batch)

    places = [position for position, _ in islice(endless(epoch_of, start=BatchPosition(1, 1)), 5)]
    assert asked == [(1, 1), (2, 0), (2, 1), (2, 2), (3, 0)]
    wanted = [
        BatchPosition(2, 0),
        BatchPosition(2, 1),
        BatchPosition(2, 2),
        BatchPosition(3, 0),
        BatchPosition(3, 1),
    ]
    assert places == wanted
