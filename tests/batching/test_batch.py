from __future__ import annotations

from array import array
from dataclasses import fields

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.special_tokens import BEGIN, END, PAD
from regard.batching.batch import Example, collate, encode_pairs
from regard.corpora.parallel import SentencePair
from regard.text.words import CharacterTokenizer

IDS = st.lists(st.integers(min_value=4, max_value=90), max_size=9).map(tuple)
PAIRS = st.lists(st.tuples(IDS, IDS), min_size=1, max_size=6)


def test_collate() -> None:
    batch = collate([Example((7, 8), (9,)), Example((5,), (4, 5, 6))])
    assert batch.source.tolist() == [[7, 8, END], [5, END, PAD]]
    assert batch.source_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.target_input.tolist() == [[BEGIN, 9, PAD, PAD], [BEGIN, 4, 5, 6]]
    assert batch.target_output.tolist() == [[9, END, PAD, PAD], [4, 5, 6, END]]
    assert batch.target_mask.tolist() == [[True, True, False, False], [True] * 4]
    assert batch.source.dtype == batch.target_input.dtype == torch.int64
    assert batch.target_tokens == 6
    assert batch.padding_share == pytest.approx(3 / 14)


@settings(deadline=None, max_examples=50)
@given(PAIRS)
def test_nothing_but_padding_is_added(pairs: list[tuple[tuple[int, ...], ...]]) -> None:
    examples = [Example(*pair) for pair in pairs]
    batch = collate(examples)
    for row, example in enumerate(examples):
        source = batch.source[row][batch.source_mask[row]].tolist()
        heard = batch.target_input[row][batch.target_mask[row]].tolist()
        said = batch.target_output[row][batch.target_mask[row]].tolist()
        assert source == [*example.source, END]
        assert heard == [BEGIN, *example.target]
        assert said == [*example.target, END]
        assert (len(source), len(said)) == example.lengths
    assert (batch.source[~batch.source_mask] == PAD).all()
    assert (batch.target_input[~batch.target_mask] == PAD).all()
    assert (batch.target_output[~batch.target_mask] == PAD).all()


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one example"):
        collate([])


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_parts_hold_all_pairs_without_needless_padding(count: int) -> None:
    examples = [Example((4,) * n, (5,) * (7 - n), links=(1, 0)) for n in range(1, 6)]
    parts = collate(examples).split(count)
    assert len(parts) == min(count, 5)
    for first, part in enumerate(parts):
        wanted = collate(examples[first :: len(parts)])
        for field in fields(wanted):
            assert torch.equal(getattr(part, field.name), getattr(wanted, field.name))


def test_to_another_device() -> None:
    batch = collate([Example((7,), (9,))]).to("meta")
    assert batch.source.device.type == batch.target_mask.device.type == "meta"


def test_encode_pairs() -> None:
    source = CharacterTokenizer.train(["abc"])
    target = CharacterTokenizer.train(["xyz"])
    pairs = [SentencePair("ab", "x"), SentencePair("a", "xyz"), SentencePair("abc", "z")]
    every = encode_pairs(pairs, source, target)
    assert [target.decode(example.target) for example in every] == ["x", "xyz", "z"]
    assert every[0] == Example(array("i", source.encode("ab")), array("i", target.encode("x")))
    assert encode_pairs(pairs, source, target, max_length=3) == every[:1]
    assert encode_pairs(pairs, source, target, max_length=4) == every
    assert collate(every).target_tokens == 8
