"""Text in pictures: labels of attention maps, scripts and their directions, fonts and widths."""

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
    """The common name of a script, and a font that has it."""

    name: str
    font: str


CJK_FONT = "Noto Sans CJK (Debian: fonts-noto-cjk)"
OTHER_FONT = "Noto Sans (Debian: fonts-noto-core)"
# By the first word of a character's Unicode name; other scripts are named by that word itself.
CJK_LANGUAGES = {
    "CJK": "Chinese",
    "IDEOGRAPHIC": "Chinese",
    "FULLWIDTH": "Chinese",
    "BOPOMOFO": "Chinese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "KATAKANA-HIRAGANA": "Japanese",
    "HANGUL": "Korean",
}
SYMBOL_FONT = "Noto Emoji or Symbola (Debian: fonts-symbola)"
PRIVATE_FONT = "the one that was made for them"


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
    """Return a right-to-left text between marks that keep its punctuation in place."""
    if not begins_right_to_left(text):
        return text
    return f"{RIGHT_TO_LEFT_MARK}{text}{RIGHT_TO_LEFT_MARK}"


def is_wide(letter: str) -> bool:
    """Return whether a character is as wide as two letters and stays upright in columns."""
    return unicodedata.east_asian_width(letter) in ("W", "F")


def script_of(letter: str) -> Script:
    """Return the script of a character."""
    name = unicodedata.name(letter, "")
    if not name:
        return Script("private characters", PRIVATE_FONT)
    if unicodedata.category(letter) in ("So", "Sk", "Sm"):
        return Script("emoji and symbols", SYMBOL_FONT)
    first = name.split()[0]
    if first in CJK_LANGUAGES:
        return Script(CJK_LANGUAGES[first], CJK_FONT)
    return Script(first.capitalize(), OTHER_FONT)


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
    """Part of a picture is drawn as boxes because no installed font has its script."""


def preferred_families() -> list[str]:
    """Return the fonts in which a character is looked up, in order."""
    return [OWN_FAMILY, *_installed_families()]


def families_with(characters: Iterable[int]) -> list[str]:
    """Return installed fonts that together have these characters, as far as any has them."""
    return list(_families_with(frozenset(characters)))


def unreadable(characters: Iterable[int]) -> str:
    """Return a message that names the script of characters that no font has, and a remedy."""
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
    """Search the font files themselves: matplotlib's list may be out of date."""
    wanted, found = set(characters), []
    for path in sorted(font_manager.findSystemFonts()):
        try:
            font = FT2Font(path)
            has = wanted & font.get_charmap().keys()
            if has:
                font_manager.fontManager.addfont(path)
        except (OSError, RuntimeError):  # damaged, or of an unsupported kind
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
    """Checked weights, with a target word for each row and a source word for each column."""

    weights: Float[np.ndarray, "target source"]
    source: tuple[str, ...]
    target: tuple[str, ...]

    @property
    def limit(self) -> float:
        """The weight that gets the strongest colour: the largest, rounded up to a tenth.

        Diffuse attention is visible too, and the scale next to the map gives the value.
        """
        largest = float(self.weights.max())
        return max(largest, max(1, math.ceil(10 * largest)) / 10)


def labelled_map(
    weights: Float[np.ndarray, "target source"], *, source: Sequence[str], target: Sequence[str]
) -> LabelledMap:
    """Return weights with their words, or refuse those that do not fit each other."""
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
    """Return a text with plain spaces and without characters that are not allowed in files.

    Control characters, lone surrogates and noncharacters would make XML and HTML invalid.
    """
    return "".join(_plain_character(character) for character in text)


def readable_label(text: str, *, longest: int = 24) -> str:
    """Return a word as a label: one line, never invisible, cut if it is too long."""
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
    """Return the centre of each word and the width of the whole line, in letters."""
    centres, left = [], 0.0
    for word in words:
        width = label_width(readable_label(word))
        centres.append(left + width / 2)
        left += width + WORD_GAP
    return centres, left


def label_width(label: str) -> int:
    """Return the width of a label in letters; a Chinese character is two letters wide."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if is_wide(letter) else 1 for letter in label
    )
