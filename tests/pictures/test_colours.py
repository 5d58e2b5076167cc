from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.pictures.canvas import INK, PALETTE, colour_on_dark, colour_on_light, hexadecimal

WHITE, DARK = "#ffffff", "#14171c"


def luminance(colour: str) -> float:
    """Relative luminance as the accessibility guidelines (WCAG 2) define it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, brighter = sorted([luminance(one), luminance(other)])
    return (brighter + 0.05) / (darker + 0.05)


def test_no_weight_is_white_and_the_colours_are_blue():
    assert hexadecimal(colour_on_light(0.0)) == WHITE
    for colour_of in (colour_on_light, colour_on_dark):
        red, green, blue = colour_of(0.7)
        assert red < green < blue


@settings(deadline=None, max_examples=50)
@given(st.floats(-1, 2), st.floats(0.02, 1))
def test_more_weight_is_darker_on_light_and_brighter_on_dark(share, more):
    assert luminance(hexadecimal(colour_on_light(share))) >= luminance(
        hexadecimal(colour_on_light(share + more))
    )
    assert luminance(hexadecimal(colour_on_dark(share))) <= luminance(
        hexadecimal(colour_on_dark(share + more))
    )


@pytest.mark.parametrize("background", [WHITE, DARK])
@pytest.mark.parametrize("colour", PALETTE)
def test_curves_have_enough_contrast_in_both_themes(colour, background):
    assert contrast(colour, background) >= 3


def test_text_is_readable():
    assert contrast(INK, WHITE) >= 7
