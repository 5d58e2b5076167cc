"""Where the words of a sentence stand when it is written on one line, in widths of a letter."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from regard.pictures.labelled_map import readable_label
from regard.pictures.scripts import is_wide

WORD_GAP = 2  # letters between words
INCHES_A_LETTER = 0.095


def word_centres(words: Sequence[str]) -> tuple[list[float], float]:
    """Return the middle of each word and the width of the whole line."""
    centres, left = [], 0.0
    for word in words:
        width = label_width(readable_label(word))
        centres.append(left + width / 2)
        left += width + WORD_GAP
    return centres, left


def label_width(label: str) -> int:
    """Return how wide a label is drawn; a Chinese character takes the room of two letters."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if is_wide(letter) else 1 for letter in label
    )
