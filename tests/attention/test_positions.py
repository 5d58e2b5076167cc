from __future__ import annotations

import math

import pytest
import torch

from regard.attention.positions import (
    LearnedPositions,
    RelativePositions,
    Rotary,
    Sinusoids,
    alibi_slopes,
)
from regard.base.errors import RegardError


def test_sinusoids_follow_the_formula_of_the_paper() -> None:
    found = Sinusoids(6)(5)
    for place in range(5):
        for wave in range(3):
            angle = place / 10_000 ** (2 * wave / 6)
            assert found[place, 2 * wave].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert found[place, 2 * wave + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_halves_hold_the_same_waves_in_another_order() -> None:
    interleaved, halves = Sinusoids(8)(7), Sinusoids(8, layout="halves")(7)
    assert torch.equal(halves, torch.cat([interleaved[:, 0::2], interleaved[:, 1::2]], dim=1))


def test_stretched_sinusoids_end_at_the_slowest_wave() -> None:
    assert Sinusoids(8, stretched=True).rates[-1].item() == pytest.approx(1e-4)


def test_an_offset_moves_the_first_position() -> None:
    assert torch.equal(Sinusoids(8, offset=2)(3), Sinusoids(8)(5)[2:])


def test_sinusoids_go_on_beyond_any_length_and_a_shift_is_a_rotation() -> None:
    far = Sinusoids(16)(2, start=1_000_000)
    near = Sinusoids(16)(2)
    assert (far[0] @ far[1]).item() == pytest.approx((near[0] @ near[1]).item(), abs=1e-4)
    assert torch.equal(Sinusoids(16)(10, start=7), Sinusoids(16)(17)[7:])


def test_sinusoids_want_an_even_width() -> None:
    with pytest.raises(ValueError, match=r"model_dim \(7\) must be even"):
        Sinusoids(7)


def test_learned_positions_refuse_what_they_never_saw() -> None:
    positions = LearnedPositions(4, max_length=10)
    assert positions(3, start=7).shape == (3, 4)
    with pytest.raises(RegardError, match=r"sequence of 11 tokens is longer than the 10 positions"):
        positions(4, start=7)


def test_relative_scores_and_context_follow_the_formula() -> None:
    torch.manual_seed(1)
    positions = RelativePositions(4, reach=2)
    query, weights = torch.randn(2, 3, 5, 4), torch.rand(2, 3, 5, 6)
    distances = torch.arange(6)[None, :] - torch.arange(5)[:, None]
    scores, context = positions.scores(query, distances), positions.context(weights, distances)
    for i in range(5):
        expected = torch.zeros(2, 3, 4)
        for j in range(6):
            index = max(-2, min(2, j - i)) + 2
            torch.testing.assert_close(scores[:, :, i, j], query[:, :, i] @ positions.keys[index])
            expected = expected + weights[:, :, i, j, None] * positions.values[index]
        torch.testing.assert_close(context[:, :, i], expected)


def test_rotated_products_depend_on_distance_alone() -> None:
    torch.manual_seed(1)
    rotary = Rotary(8)
    query, key = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    products = [
        (rotary(query, start=start + 3) * rotary(key, start=start)).sum().item()
        for start in (0, 1, 50, 3_000)
    ]
    assert products == pytest.approx([products[0]] * 4, abs=1e-4)
    assert torch.equal(rotary(query, start=0), query)


def test_rotary_wants_heads_of_even_width() -> None:
    with pytest.raises(ValueError, match=r"width of a head \(5\) must be even"):
        Rotary(5)


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (8, [2.0**-k for k in range(1, 9)]),
        (4, [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]),
        (3, [2.0**-4, 2.0**-8, 2.0**-2]),
    ],
)
def test_alibi_slopes_are_those_of_the_paper(heads: int, expected: list[float]) -> None:
    assert alibi_slopes(heads).tolist() == pytest.approx(expected)
