"""The fonts that pictures look characters up in, and what is said where none has a character."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from regard.pictures.scripts import script_of

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
