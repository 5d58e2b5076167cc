from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import Tensor

from regard.decoding.rules import (
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalise_repetition,
    with_temperature,
)

# log-probabilities of 1/2, 1/4, 1/8, 1/8
HALVES = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()


def kept(logits: Tensor) -> list[list[int]]:
    return [torch.isfinite(row).nonzero().flatten().tolist() for row in logits]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(keep_top_k(HALVES, 1), [0], id="top-k 1 is greedy"),
        pytest.param(keep_top_k(HALVES, 3), [0, 1, 2], id="of equals the first stays"),
        pytest.param(keep_top_k(HALVES, 9), [0, 1, 2, 3], id="top-k beyond the vocabulary"),
        pytest.param(keep_top_p(HALVES, 0.5), [0], id="top-p met exactly"),
        pytest.param(keep_top_p(HALVES, 0.51), [0, 1], id="top-p just above"),
        pytest.param(keep_top_p(HALVES, 0.8), [0, 1, 2], id="top-p cuts among equals"),
        pytest.param(keep_top_p(HALVES, 1.0), [0, 1, 2, 3], id="top-p of all"),
        pytest.param(keep_top_p(HALVES, 1e-9), [0], id="the best always stays"),
        pytest.param(keep_min_p(HALVES, 0.5), [0, 1], id="min-p by share of the best"),
        pytest.param(keep_min_p(HALVES, 0.0), [0, 1, 2, 3], id="min-p of all"),
        pytest.param(keep_min_p(HALVES, 1.0), [0], id="min-p of the best"),
        pytest.param(with_temperature(HALVES, 0.0), [0], id="temperature 0 is greedy"),
    ],
)
def test_what_stays(found: Tensor, expected: list[int]) -> None:
    assert kept(found) == [expected]


def test_temperature_scales_log_odds() -> None:
    found = with_temperature(HALVES, 0.5).log_softmax(-1)[0]
    assert float(found[0] - found[1]) == pytest.approx(2 * math.log(2))


def test_a_tiny_temperature_stays_finite_where_it_matters() -> None:
    found = with_temperature(torch.tensor([[30.0, 20.0]]), 1e-38).softmax(-1)
    assert found.tolist() == [[1.0, 0.0]]


def test_repetition_lowers_what_was_seen_and_nothing_else() -> None:
    logits = torch.tensor([[2.0, -2.0, 1.0, -1.0]])
    seen = torch.tensor([[True, True, False, False]])
    found = penalise_repetition(logits, seen=seen, penalty=2.0)
    assert found.tolist() == [[1.0, -4.0, 1.0, -1.0]]
    assert penalise_repetition(logits, seen=seen, penalty=1.0).equal(logits)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(lambda: with_temperature(HALVES, -1.0), r"temperature \(-1.0\)", id="T"),
        pytest.param(lambda: with_temperature(HALVES, math.nan), r"temperature \(nan\)", id="nan"),
        pytest.param(lambda: keep_top_k(HALVES, 0), r"top_k \(0\)", id="top-k"),
        pytest.param(lambda: keep_top_p(HALVES, 0.0), r"top_p \(0.0\)", id="top-p"),
        pytest.param(lambda: keep_min_p(HALVES, 1.5), r"min_p \(1.5\)", id="min-p"),
        pytest.param(
            lambda: penalise_repetition(HALVES, seen=HALVES > 0, penalty=0.0),
            r"repetition_penalty \(0.0\)",
            id="repetition",
        ),
    ],
)
def test_values_that_mean_nothing(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


ROWS = arrays.arrays("float32", (3, 7), elements=st.floats(-20, 20, width=32, allow_nan=False)).map(
    torch.from_numpy
)


@settings(deadline=None, max_examples=40)
@given(ROWS, st.integers(1, 9), st.floats(0.01, 1), st.floats(0, 1), st.floats(0.05, 5))
def test_the_best_stays_and_what_stays_keeps_its_proportions(
    logits: Tensor, count: int, mass: float, share: float, temperature: float
) -> None:
    before = logits.clone()
    for found in (
        keep_top_k(logits, count),
        keep_top_p(logits, mass),
        keep_min_p(logits, share),
        with_temperature(logits, temperature) * temperature + logits.amax(-1, keepdim=True),
    ):
        stays = torch.isfinite(found)
        assert stays.gather(1, logits.argmax(-1, keepdim=True)).all()
        assert torch.allclose(found[stays], logits[stays], atol=1e-4)
    assert (torch.isfinite(keep_top_k(logits, count)).sum(1) == min(count, 7)).all()
    probabilities = logits.double().softmax(-1)
    held = (probabilities * torch.isfinite(keep_top_p(logits, mass))).sum(1)
    assert (held >= mass - 1e-9).all()
    assert logits.equal(before)
