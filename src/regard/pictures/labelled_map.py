"""Attention weights with the words they stand between: what every heat map is drawn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from regard.base.errors import RegardError

REPLACEMENT = "\ufffd"
VISIBLE_SPACE = "␣"


@dataclass(frozen=True)
class LabelledMap:
    """Weights with a target word for each row and a source word for each column, checked."""

    weights: Float[np.ndarray, "target source"]
    source: tuple[str, ...]
    target: tuple[str, ...]

    @property
    def limit(self) -> float:
        """The weight that gets the strongest colour: the next tenth above the largest.

        So diffuse attention can be seen too, and the scale beside it says what it is.
        """
        largest = float(self.weights.max())
        return max(largest, max(1, math.ceil(10 * largest)) / 10)


def labelled_map(
    weights: Float[np.ndarray, "target source"], *, source: Sequence[str], target: Sequence[str]
) -> LabelledMap:
    """Return weights and words as one, or refuse those that do not fit each other."""
    if weights.shape != (len(target), len(source)):
        raise RegardError(
            f"weights of shape {weights.shape} do not fit {len(target)} target words "
            f"and {len(source)} source words."
        )
    if weights.size == 0:
        raise RegardError(
            f"there is nothing to draw: {len(target)} target words and {len(source)} source words."
        )
    if not np.isfinite(weights).all():
        raise RegardError("the weights hold values that are not finite numbers.")
    return LabelledMap(weights=weights, source=tuple(source), target=tuple(target))


def plain_text(text: str) -> str:
    """Return a text in which any space is a space and what no file may hold is replaced.

    Control characters, lone surrogates and noncharacters would make XML and HTML invalid.
    """
    return "".join(_plain_character(character) for character in text)


def readable_label(text: str, *, longest: int = 24) -> str:
    """Return a word as a label: one line, never invisible, cut where it grows too long."""
    plain = plain_text(text)
    if not plain.strip():
        return VISIBLE_SPACE
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def _plain_character(character: str) -> str:
    if character.isspace():
        return " "
    code = ord(character)
    control = code < 0x20 or 0x7F <= code < 0xA0
    surrogate = 0xD800 <= code < 0xE000
    noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code < 0xFDF0
    return REPLACEMENT if control or surrogate or noncharacter else character
