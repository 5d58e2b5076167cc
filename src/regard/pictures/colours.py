"""Colours that all pictures share: two ramps of one hue for weights, and a palette for models.

The ramps are straight lines of lightness in OKLab (Ottosson 2020), so that an equal step of weight
looks like an equal step of colour.
"""

from __future__ import annotations

import math
from typing import TypeAlias

Colour: TypeAlias = tuple[int, int, int]

BLUE_HUE = math.radians(256)

# Ink, faint ink and rules of drawn pictures; the report lets them follow the reader's theme.
INK = "#1f2328"
FAINT = "#6a737d"
RULE = "#e2e6ea"

# For models, in this order; each stands out by at least 3:1 on white and on the report's night.
PALETTE = ("#2f7de1", "#d9622b", "#1f9d72", "#b05cc6", "#b8860b", "#d6457a", "#5f7f95", "#8a7a2d")


def ink_on_paper(share: float) -> Colour:
    """Return the colour of a weight on a light ground: 0 is white, 1 the deepest blue."""
    share = _clip(share)
    return _from_oklch(1.0 - 0.66 * share, 0.145 * math.sin(0.62 * math.pi * share), BLUE_HUE)


def light_in_the_dark(share: float) -> Colour:
    """Return the colour of a weight on a dark ground: 0 is nearly black, 1 the brightest blue."""
    share = _clip(share)
    chroma = 0.025 + 0.11 * math.sin(math.pi * min(1.0, 0.88 * share))
    return _from_oklch(0.25 + 0.67 * share, chroma, BLUE_HUE)


def hexadecimal(colour: Colour) -> str:
    """Return a colour as `#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _clip(share: float) -> float:
    return min(1.0, max(0.0, share))


def _from_oklch(lightness: float, chroma: float, hue: float) -> Colour:
    """Return the sRGB colour of an OKLCh one."""
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    # Cube roots of the cones' responses, then linear light.
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        _encoded(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
        _encoded(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
        _encoded(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short),
    )


def _encoded(light: float) -> int:
    """Return linear light as an sRGB byte."""
    light = _clip(light)
    encoded = 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055
    return round(255 * encoded)
