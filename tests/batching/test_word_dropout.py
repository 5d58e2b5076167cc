from __future__ import annotations

import torch

from regard.base.special_tokens import BEGIN, END, PAD, UNKNOWN
from regard.batching.augmentation import drop_words
from regard.batching.batch import Example, collate


def test_a_share_of_what_is_read_becomes_unknown() -> None:
    batch = collate([Example(range(4, 604), range(4, 604))] * 20 + [Example([9], [9])])
    torch.manual_seed(1)
    dropped = drop_words(batch, 0.3)
    for before, after in [
        (batch.source, dropped.source),
        (batch.target_input, dropped.target_input),
    ]:
        changed = before != after
        assert 0.28 < changed.float().sum() / (before > END).sum() < 0.32
        assert after[changed].unique().tolist() == [UNKNOWN]
        for mark in (PAD, BEGIN, END):
            assert torch.equal(before == mark, after == mark)
    assert torch.equal(dropped.target_output, batch.target_output)
    assert not torch.equal(
        dropped.source[:, :600] == UNKNOWN, dropped.target_input[:, 1:] == UNKNOWN
    )


def test_it_is_seeded() -> None:
    batch = collate([Example(range(4, 54), range(4, 54))])
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(drop_words(batch, 0.5).source)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
