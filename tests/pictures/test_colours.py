from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.pictures.canvas import INK, PALETTE, hexadecimal, ink_on_paper, light_in_the_dark

WHITE, NIGHT = "#ffffff", "#14171c"


def light(colour: str) -> float:
    """Relative luminance as the accessibility guidelines (WCAG 2) define it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, brighter = sorted([light(one), light(other)])
    return (brighter + 0.05) / (darker + 0.05)


def test_paper_is_white_and_the_ramps_are_blue():
    assert hexadecimal(ink_on_paper(0.0)) == WHITE
    for ramp in (ink_on_paper, light_in_the_dark):
        red, green, blue = ramp(0.7)
        assert red < green < blue


@settings(deadline=None, max_examples=50)
@given(st.floats(-1, 2), st.floats(0.02, 1))
def test_more_weight_is_darker_on_paper_and_brighter_in_the_dark(share, more):
    assert light(hexadecimal(ink_on_paper(share))) >= light(hexadecimal(ink_on_paper(share + more)))
    assert light(hexadecimal(light_in_the_dark(share))) <= light(
        hexadecimal(light_in_the_dark(share + more))
    )


@pytest.mark.parametrize("ground", [WHITE, NIGHT])
@pytest.mark.parametrize("colour", PALETTE)
def test_curves_stand_out_by_day_and_by_night(colour, ground):
    assert contrast(colour, ground) >= 3


def test_ink_can_be_read():
    assert contrast(INK, WHITE) >= 7
