"""Text in pictures: labels of attention maps, scripts and directions, fonts, widths of words."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from regard.base.errors import RegardError

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


# Matplotlib brings DejaVu Sans with it: Latin, Greek, Cyrillic, Hebrew, Arabic and more.
OWN_FAMILY = "DejaVu Sans"
# Where a character is not in it, the first of these that is installed and has it.
OTHER_FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "WenQuanYi Zen Hei",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Bengali",
    "Noto Sans Tamil",
    "Noto Sans Thai",
    "Nirmala UI",
    "Leelawadee UI",
    "Arial Unicode MS",
    "Noto Sans",
    "Noto Sans NKo",
    "Noto Emoji",
    "Symbola",
    "Unifont",
)


class UnreadableScriptWarning(UserWarning):
    """Part of a picture is drawn as boxes: no installed font has its script."""


def preferred_families() -> list[str]:
    """Return the fonts to look a character up in, first to last."""
    return [OWN_FAMILY, *_installed_families()]


def families_with(characters: Iterable[int]) -> list[str]:
    """Return installed fonts that have these characters between them, as far as any has."""
    return list(_families_with(frozenset(characters)))


def unreadable(characters: Iterable[int]) -> str:
    """Return the sentence about characters that no font has: which script, and what helps."""
    scripts = list(dict.fromkeys(script_of(chr(code)) for code in sorted(characters)))
    names = ", ".join(dict.fromkeys(script.name for script in scripts))
    remedies = " and ".join(dict.fromkeys(script.font for script in scripts))
    return (
        f"No installed font has this script: {names}. It is drawn as boxes. Install {remedies}, "
        "or write an .svg file, which is shown with the reader's own fonts."
    )


@cache
def _installed_families() -> tuple[str, ...]:
    installed = set(font_manager.get_font_names())
    return tuple(family for family in OTHER_FAMILIES if family in installed)


@cache
def _families_with(characters: frozenset[int]) -> tuple[str, ...]:
    """Search the font files themselves: matplotlib's list may be older than the last font."""
    wanted, found = set(characters), []
    for path in sorted(font_manager.findSystemFonts()):
        try:
            font = FT2Font(path)
            has = wanted & font.get_charmap().keys()
            if has:
                font_manager.fontManager.addfont(path)
        except (OSError, RuntimeError):  # damaged, or of a kind that cannot be drawn with
            continue
        if has:
            found.append(font.family_name)
            wanted -= has
        if not wanted:
            break
    return tuple(found)


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
