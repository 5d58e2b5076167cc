"""Which script a text is written in, in which direction, and where to find a font for it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

RIGHT_TO_LEFT = frozenset({"R", "AL"})
RIGHT_TO_LEFT_MARK = "\u200f"


class Script(NamedTuple):
    """A script as a person calls it, and a font that has it."""

    name: str
    font: str


CJK_FONT = "Noto Sans CJK (Debian: fonts-noto-cjk)"
OTHER_FONT = "Noto Sans (Debian: fonts-noto-core)"
# How the Unicode names of a script's characters begin; what is not listed is named by its letters.
SCRIPTS = {
    "CJK": Script("Chinese", CJK_FONT),
    "IDEOGRAPHIC": Script("Chinese", CJK_FONT),
    "FULLWIDTH": Script("Chinese", CJK_FONT),
    "BOPOMOFO": Script("Chinese", CJK_FONT),
    "HIRAGANA": Script("Japanese", CJK_FONT),
    "KATAKANA": Script("Japanese", CJK_FONT),
    "KATAKANA-HIRAGANA": Script("Japanese", CJK_FONT),
    "HANGUL": Script("Korean", CJK_FONT),
}
SYMBOLS = Script("emoji and symbols", "Noto Emoji or Symbola (Debian: fonts-symbola)")
PRIVATE = Script("private characters", "the one that was made for them")


def reads_right_to_left(words: Iterable[str]) -> bool:
    """Return whether most letters of these words belong to a script written from the right."""
    kinds = [unicodedata.bidirectional(letter) for word in words for letter in word]
    return sum(kind in RIGHT_TO_LEFT for kind in kinds) > kinds.count("L")


def begins_right_to_left(text: str) -> bool:
    """Return whether the first letter of a text belongs to a script written from the right."""
    for letter in text:
        kind = unicodedata.bidirectional(letter)
        if kind == "L" or kind in RIGHT_TO_LEFT:
            return kind != "L"
    return False


def with_direction(text: str) -> str:
    """Return a text between marks that keep its punctuation where its own script puts it."""
    if not begins_right_to_left(text):
        return text
    return f"{RIGHT_TO_LEFT_MARK}{text}{RIGHT_TO_LEFT_MARK}"


def is_wide(letter: str) -> bool:
    """Return whether a character takes the room of two letters and stands upright in columns."""
    return unicodedata.east_asian_width(letter) in ("W", "F")


def script_of(letter: str) -> Script:
    """Return the script of a character."""
    name = unicodedata.name(letter, "")
    if not name:
        return PRIVATE
    if unicodedata.category(letter) in ("So", "Sk", "Sm"):
        return SYMBOLS
    first = name.split()[0]
    return SCRIPTS.get(first) or Script(first.capitalize(), OTHER_FONT)
