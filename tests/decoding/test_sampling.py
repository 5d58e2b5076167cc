from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.decoding.sampling import SamplingOptions, draw, sample

SOURCE = torch.tensor([[4, 3], [5, 3], [6, 3]])
MASK = torch.ones_like(SOURCE, dtype=torch.bool)


def rules(*limits: int) -> Rules:
    return Rules(limits=torch.tensor(limits))


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(3)), count=st.integers(1, 3))
def test_draws_do_not_depend_on_neighbours(
    table: Any, seed: int, order: list[int], count: int
) -> None:
    model, limits = table(seed), (3, 9, 6)
    together = sample(
        model,
        SOURCE[order],
        MASK,
        rules=rules(*(limits[i] for i in order)),
        count=count,
        options=SamplingOptions(seed=seed, top_p=0.9),
    )
    for index, draws in zip(order, together, strict=True):
        rows = slice(index, index + 1)
        (alone,) = sample(
            model,
            SOURCE[rows],
            MASK[rows],
            rules=rules(limits[index]),
            count=count,
            options=SamplingOptions(seed=seed, top_p=0.9),
        )
        assert [d.tokens for d in draws] == [d.tokens for d in alone]
        assert [d.score for d in draws] == sorted((d.score for d in draws), reverse=True)


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}], ids=str)
def test_the_most_cautious_sampling_is_greedy(table: Any, options: dict[str, Any]) -> None:
    model = table(3)
    drawn = sample(
        model, SOURCE, MASK, rules=rules(5, 6, 7), options=SamplingOptions(seed=1, **options)
    )
    greedy = greedy_search(model, SOURCE, MASK, rules=rules(5, 6, 7))
    for (one,), (other,) in zip(drawn, greedy, strict=True):
        assert one.tokens == other.tokens
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-5)


def test_draws_are_as_frequent_as_they_are_probable(table: Any) -> None:
    model, count = table(8), 3000
    (draws,) = sample(
        model, SOURCE[:1], MASK[:1], rules=rules(3), count=count, options=SamplingOptions(seed=5)
    )
    (text, times), *_ = Counter(d.tokens for d in draws).most_common(1)
    wanted = next(d for d in draws if d.tokens == text).log_probability
    # Padding and begin marks never come, so what is drawn is a little more probable.
    assert times / count > 0.95 * torch.tensor(wanted).exp()


def test_another_seed_draws_others(table: Any) -> None:
    model = table(1, sharpness=0.1)
    found = [
        sample(
            model,
            SOURCE[:1],
            MASK[:1],
            rules=rules(9),
            count=5,
            options=SamplingOptions(seed=seed),
        )[0]
        for seed in (1, 2)
    ]
    first, second = ([draw.tokens for draw in draws] for draws in found)
    assert first != second


def test_what_cannot_come_is_never_drawn() -> None:
    probabilities = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]]).double().expand(4, -1)
    uniforms = torch.tensor([0.0, 0.4999, 0.5, 1.0]).double()
    assert draw(probabilities, uniforms).tolist() == [1, 1, 3, 3]
