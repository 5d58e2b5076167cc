from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.base.special_tokens import BEGIN, END, PAD
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.decoding.search import LengthPenalty

SOURCE = torch.tensor([[4, 3], [5, 3], [6, 3]])
MASK = torch.ones_like(SOURCE, dtype=torch.bool)


def by_hand(model: Any, sentence: int, limit: int) -> tuple[tuple[int, ...], float]:
    """Return what greedy search does, one token after the other."""
    read, total = (BEGIN,), 0.0
    while True:
        log_p: Tensor = model.logits(sentence, read).log_softmax(dim=0)
        allowed = log_p.clone()
        allowed[[PAD, BEGIN]] = -torch.inf
        token = END if len(read) == limit else int(allowed.argmax())
        total += float(log_p[token])
        if token == END:
            return read[1:], total
        read = (*read, token)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_the_most_probable_symbol_at_every_step(table: Any, seed: int, penalty: float) -> None:
    model, limits = table(seed), [3, 9, 1]
    found = greedy_search(
        model,
        SOURCE,
        MASK,
        rules=Rules(limits=torch.tensor(limits)),
        penalty=LengthPenalty(alpha=penalty),
    )
    for row, (hypothesis,) in enumerate(found):
        tokens, total = by_hand(model, row + 4, limits[row])
        assert hypothesis.tokens == tokens
        assert hypothesis.log_probability == pytest.approx(total, abs=1e-5)
        assert hypothesis.score == pytest.approx(total / (len(tokens) + 1) ** penalty, abs=1e-5)


def test_the_attention_has_a_row_for_each_token_and_the_end(table: Any) -> None:
    rules = Rules(limits=torch.tensor([5, 5, 5]))
    found = greedy_search(table(2), SOURCE, MASK, rules=rules, with_weights=True)
    for (hypothesis,) in found:
        heard = [BEGIN, *hypothesis.tokens]
        assert hypothesis.attention is not None
        assert hypothesis.attention.tolist() == [[i + 1, heard[i]] for i in range(len(heard))]
