from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.batching.batch import split_rows
from regard.batching.order import BatchOrder, BatchPosition, iterate_rows
from regard.batching.texts import AnswerIds, answer_ids, collate_answers

IDS = st.lists(st.integers(1, 9), min_size=1, max_size=9)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=4), st.integers(1, 12))
def test_only_answers_are_predicted(pairs: list[tuple[list[int], list[int]]], context: int) -> None:
    examples = [answer_ids(prompt, answer, context=context) for prompt, answer in pairs]
    batch = collate_answers(examples)
    assert batch.tokens.shape[1] <= context
    for row, (prompt, answer) in enumerate(pairs):
        kept = answer[:context]
        assert batch.expected[row][batch.mask[row]].tolist() == kept
        assert batch.tokens[row][batch.mask[row]].tolist()[1:] == kept[:-1]
        before = examples[row].ids[: examples[row].answer]
        assert before == prompt[len(prompt) - len(before) :]
        assert len(before) == min(len(prompt), context + 1 - len(kept))
    assert batch.target_tokens == sum(min(len(answer), context) for _, answer in pairs)


def test_padding_is_counted() -> None:
    batch = collate_answers([AnswerIds([1, 2, 3], 1), AnswerIds([1, 2], 1)])
    assert batch.padding_share == pytest.approx(0.25)


def test_batches_without_end_resume_exactly() -> None:
    order = BatchOrder([(2, 0)] * 7, token_budget=4, seed=1)
    whole = list(islice(iterate_rows(order, list, start=BatchPosition()), 11))
    for place in (0, 2, 3, 6):
        resumed = list(islice(iterate_rows(order, list, start=whole[place][0]), 3))
        assert resumed == whole[place + 1 : place + 4]
    assert sorted(row for _, rows in whole[:4] for row in rows) == list(range(7))


def test_rows_of_a_batch_can_be_shared_out() -> None:
    examples = [answer_ids([4] * size, [5, 6], context=9) for size in (1, 3, 5)]
    batch = collate_answers(examples)
    parts = split_rows(batch, 2)
    assert [len(part.tokens) for part in parts] == [2, 1]
    assert sum(part.target_tokens for part in parts) == batch.target_tokens
    assert batch.padding_share == pytest.approx(1 - 12 / 18)
    assert parts[1].padding_share == pytest.approx(1 - 4 / 6)
