from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from regard.batching.batch import prefetch


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_results_come_in_order(at_once: int) -> None:
    assert list(prefetch(lambda x: x * x, range(7), at_once=at_once)) == [0, 1, 4, 9, 16, 25, 36]


def test_so_many_are_worked_on_at_once() -> None:
    both = threading.Barrier(2)
    list(prefetch(lambda _: both.wait(20), range(4), at_once=2))  # a lone one would wait in vain


@pytest.mark.parametrize("at_once", [1, 2])
def test_items_are_not_taken_long_before_they_are_needed(at_once: int) -> None:
    taken = []

    def items() -> Iterator[int]:
        for item in range(100):
            taken.append(item)
            yield item

    results = prefetch(lambda x: x, items(), at_once=at_once)
    assert next(results) == 0
    assert len(taken) == (1 if at_once == 1 else at_once + 1)


@pytest.mark.parametrize("at_once", [1, 2])
def test_what_fails_is_raised_in_its_turn(at_once: int) -> None:
    results = prefetch(lambda x: 6 // (2 - x), range(4), at_once=at_once)
    assert [next(results), next(results)] == [3, 6]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_who_stops_early_waits_only_for_what_has_begun() -> None:
    begun = []
    results = prefetch(begun.append, range(100), at_once=2)
    next(results)
    results.close()
    assert len(begun) <= 3
