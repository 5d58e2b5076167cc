from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.attention.places import (
    AddedPositions,
    DistanceBias,
    PairPositions,
    PositionOptions,
    Positions,
    RotatedPositions,
)
from regard.attention.positions import (
    POSITIONS,
    LearnedPositions,
    RelativePositions,
    Rotary,
    Sinusoids,
    alibi_slopes,
)
from regard.base.errors import RegardError

OPTIONS = PositionOptions(model_dim=12, heads=3, max_length=9, reach=2)
QUERY, KEY = torch.randn(2, 4, generator=torch.Generator().manual_seed(7))  # of one head


def sinusoids(positions: Any, i: int, j: int) -> Tensor:
    """Return sin and cos of i / 10000^(2k/d), in turns."""
    angles = [i / 10_000 ** (2 * wave / 12) for wave in range(6)]
    return torch.tensor([f(angle) for angle in angles for f in (math.sin, math.cos)])


def rotated(positions: Any, i: int, j: int) -> Tensor:
    """Return Re(q k* e^{i (i - j) theta}), summed over waves: vectors as complex numbers."""
    total = 0j
    for wave in range(2):
        q, k = (complex(float(part[wave]), float(part[wave + 2])) for part in (QUERY, KEY))
        angle = (i - j) / 10_000 ** (2 * wave / 4)
        total += q * k.conjugate() * complex(math.cos(angle), math.sin(angle))
    return torch.tensor(total.real)


def by_wave(positions: Any, i: int, j: int) -> Tensor:
    """Return q W_R r_{i-j} of the first head, whose u and v are zero at first."""
    rates = [10_000 ** (-2 * wave / 12) for wave in range(6)]
    r = [math.sin((i - j) * rate) for rate in rates] + [math.cos((i - j) * rate) for rate in rates]
    return QUERY @ (positions.projection.weight[:4] @ torch.tensor(r))


def bucket(distance: int) -> int:
    """Return the class of a distance below 8: of 32, half are for each side."""
    return abs(distance) + (16 if distance > 0 else 0)


# A new kind of positions needs one row here: its formula for a query at i and a key at j. It is
# the vector at i for those that are added, the product of query and key for those that rotate
# them, and else what is added to the score of the pair.
FORMULAS: dict[str, Callable[[Any, int, int], Tensor]] = {
    "sinusoidal": sinusoids,
    "learned": lambda positions, i, j: positions.vectors[i],
    "relative": lambda positions, i, j: QUERY @ positions.keys[max(-2, min(2, j - i)) + 2],
    "rotary": rotated,
    "alibi": lambda positions, i, j: torch.tensor(
        [-slope * abs(i - j) for slope in (1 / 16, 1 / 256, 1 / 4)]
    ),
    "segment": by_wave,
    "bucketed": lambda positions, i, j: positions.table[bucket(j - i)],
    "none": lambda positions, i, j: torch.tensor(0.0),
}


def effect(positions: Positions, i: int, j: int) -> Tensor:
    """Return what the positions do to a query at i and a key at j, in the place where they act."""
    distances = torch.arange(6)[None, :] - torch.arange(6)[:, None]
    found = torch.tensor(0.0)
    if isinstance(positions, AddedPositions):
        found = positions(6)[i]
    elif isinstance(positions, RotatedPositions):
        query, key = (part[None, None, None] for part in (QUERY, KEY))
        found = (positions(query, start=i) * positions(key, start=j)).sum()
    elif isinstance(positions, PairPositions):
        found = positions.scores(QUERY.expand(1, 1, 6, 4), distances)[0, 0, i, j]
    elif isinstance(positions, DistanceBias):
        found = positions(distances, dtype=torch.float32)[:, i, j]
    return found


def test_every_kind_has_a_formula() -> None:
    assert FORMULAS.keys() == POSITIONS.keys()


@pytest.mark.parametrize("name", POSITIONS)
def test_a_kind_of_positions_equals_its_formula(name: str) -> None:
    positions = POSITIONS[name].build(OPTIONS)
    for i in range(6):
        for j in range(6):
            expected = FORMULAS[name](positions, i, j)
            torch.testing.assert_close(effect(positions, i, j), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Positions.build(OPTIONS), "Positions does not say how it is built"),
        (lambda: AddedPositions()(3), "AddedPositions gives no vectors"),
        (lambda: RotatedPositions()(torch.ones(1, 1, 1, 2)), "gives no rotation"),
        (
            lambda: PairPositions().scores(
                torch.ones(1, 1, 1, 2), torch.zeros(1, 1, dtype=torch.long)
            ),
            "gives no scores",
        ),
        (
            lambda: PairPositions().context(
                torch.ones(1, 1, 1, 1), torch.zeros(1, 1, dtype=torch.long)
            ),
            "gives no context",
        ),
        (lambda: PairPositions().by_distance(), "gives no vectors"),
        (
            lambda: DistanceBias()(torch.zeros(1, 1, dtype=torch.long), dtype=torch.float32),
            "gives no bias",
        ),
    ],
)
def test_positions_without_a_formula_say_so(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_agreement_is_measured_where_no_formula_is_given() -> None:
    rotary = Rotary(4)
    waves = rotary.agreement(7, head_dim=4)
    measured = RotatedPositions.agreement(rotary, 7, head_dim=4)
    torch.testing.assert_close(measured, torch.cat([waves, waves], dim=1))


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
