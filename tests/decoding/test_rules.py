from __future__ import annotations

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.special_tokens import END
from regard.decoding.beam import BeamOptions, beam_search
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules

SOURCE = torch.tensor([[4, 3]])
MASK = torch.ones_like(SOURCE, dtype=torch.bool)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 3), beam=st.integers(1, 3))
def test_no_ngram_comes_twice(table: Any, seed: int, size: int, beam: int) -> None:
    rules = Rules(limits=torch.tensor([9]), no_repeat_ngram=size)
    (found,) = beam_search(
        table(seed), SOURCE, MASK, rules=rules, options=BeamOptions(beam=beam, n_best=beam)
    )
    for hypothesis in found:
        tokens = hypothesis.tokens
        grams = [tokens[i : i + size] for i in range(len(tokens) - size + 1)]
        assert len(grams) == len(set(grams))


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), least=st.integers(1, 6))
def test_outputs_are_as_long_as_they_must_be(table: Any, seed: int, least: int) -> None:
    rules = Rules(limits=torch.tensor([7]), least=torch.tensor([least]))
    (beams,) = beam_search(
        table(seed), SOURCE, MASK, rules=rules, options=BeamOptions(beam=2, n_best=2)
    )
    (greedy,) = greedy_search(table(seed), SOURCE, MASK, rules=rules)
    for hypothesis in (*beams, *greedy):
        assert least <= len(hypothesis.tokens) + 1 <= 7


def test_rules_that_leave_nothing_step_back() -> None:
    """Four tokens can be written once each; then the end may come before its time."""
    rules = Rules(limits=torch.tensor([50]), least=torch.tensor([50]), no_repeat_ngram=1)
    written = rules.start()
    for token in (1, 4, 5, 6):
        written = rules.follow(written, torch.tensor([token]))
    values = rules.log_probabilities(torch.zeros(1, 7), written)
    assert values[0, END] > -torch.inf


def test_what_has_come_is_less_likely_but_probabilities_stay_probabilities() -> None:
    rules = Rules(limits=torch.tensor([9]), repetition_penalty=2.0)
    logits = torch.tensor([[0.0, 0, 0, 1, 2, 2, -1]])
    written = rules.start()
    before = rules.log_probabilities(logits, written)
    after = rules.log_probabilities(logits, rules.follow(written, torch.tensor([4])))
    assert before[0, 4] == before[0, 5]
    assert after[0, 4] < after[0, 5]
    assert after[0].exp().sum() < 1
