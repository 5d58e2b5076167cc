"""A model whose scores are not numbers is an error, never a search without end."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from regard.base.errors import NonFiniteError
from regard.base.results import Step
from regard.decoding.beam import BeamOptions, beam_search
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.decoding.sampling import Choice, SamplingOptions, continuation, sample

SOURCE = torch.tensor([[4, 5], [5, 6]])
MASK = torch.ones(2, 2, dtype=torch.bool)
RULES = Rules(limits=torch.tensor([9, 9]))

SEARCHES = {
    "greedy": lambda model: greedy_search(model, SOURCE, MASK, rules=RULES),
    "beam": lambda model: beam_search(
        model, SOURCE, MASK, rules=RULES, options=BeamOptions(beam=3)
    ),
    "groups": lambda model: beam_search(
        model, SOURCE, MASK, rules=RULES, options=BeamOptions(beam=4, groups=2, diversity=0.5)
    ),
    "sampling": lambda model: sample(
        model, SOURCE, MASK, rules=RULES, options=SamplingOptions(seed=1), count=2
    ),
}


class Poisoned:
    """Passes on what a table says, but from one step on for one sentence NaN."""

    def __init__(self, table: Any, *, step: int):
        self._table = table
        self._step = step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def step(self, tokens: Any, state: Any, *, with_weights: bool = False) -> Any:
        found = self._table.step(tokens, state, with_weights=with_weights)
        if self._table.steps > self._step:
            found.logits[0] = math.nan
        return found


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("search", SEARCHES)
def test_scores_that_are_not_numbers_end_a_search(table: Any, search: str, step: int) -> None:
    model = Poisoned(table(3), step=step)
    with pytest.raises(NonFiniteError, match=r"the scores of the model are not numbers \(NaN\)"):
        SEARCHES[search](model)
    assert model.steps <= step + 1


def test_a_continuation_ends_too() -> None:
    class Model:
        def start(self, batch: int) -> int:
            return batch

        def read(self, tokens: Any, state: int) -> Any:
            return Step(torch.full((len(tokens), 7), math.nan), state, None)

        def select(self, state: int, rows: Any) -> int:
            return len(rows)

    with pytest.raises(NonFiniteError):
        next(
            continuation(Model(), [4], choice=Choice(), finished=lambda drawn: False, max_tokens=5)
        )


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_takes_no_more_steps_than_its_limit(table: Any, search: str) -> None:
    model = table(5)
    SEARCHES[search](model)
    assert model.steps <= 9
