from __future__ import annotations

import torch

from regard.base.special_tokens import BEGIN, END, PAD
from regard.decoding.search import IMPOSSIBLE, next_log_probabilities


def test_padding_and_begin_never_come_and_at_the_limit_only_the_end() -> None:
    logits = torch.randn(2, 7, generator=torch.Generator().manual_seed(1))
    before = logits.clone()
    found = next_log_probabilities(logits, end_only=torch.tensor([False, True]))
    plain = logits.log_softmax(dim=-1)
    possible = [token for token in range(7) if token not in (PAD, BEGIN)]
    assert torch.equal(found[0, possible], plain[0, possible])
    assert (found[:, [PAD, BEGIN]] == IMPOSSIBLE).all()
    assert found[1, END] == plain[1, END]  # a forced end is not free
    others = [token for token in range(7) if token != END]
    assert (found[1, others] == IMPOSSIBLE).all()
    assert torch.equal(logits, before)
