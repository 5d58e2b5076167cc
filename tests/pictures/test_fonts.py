from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib import font_manager

from regard.pictures.labels import (
    OTHER_FAMILIES,
    OWN_FAMILY,
    families_with,
    preferred_families,
    unreadable,
)


def test_installed_fonts_are_looked_up_after_the_own_one() -> None:
    installed = set(font_manager.get_font_names())
    others = [family for family in OTHER_FAMILIES if family in installed]
    assert preferred_families() == [OWN_FAMILY, *others]


def test_a_font_file_is_found_by_what_it_has(
    monkeypatch: pytest.MonkeyPatch, font_with_cat: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "a-damaged.ttf"
    damaged.write_bytes(b"no font")
    files = [str(damaged), str(font_with_cat)]
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: files)
    # The search is cached: no other test looks for these characters together.
    assert families_with({ord("猫"), ord("犬")}) == ["Cat Sans"]
    assert families_with({ord("犬"), ord("狼")}) == []


@pytest.mark.parametrize(
    ("text", "names", "font"),
    [
        ("猫", "Chinese", "fonts-noto-cjk"),
        ("ねこ", "Japanese", "fonts-noto-cjk"),
        ("고양이", "Korean", "fonts-noto-cjk"),
        ("नमस्ते", "Devanagari", "fonts-noto-core"),
        ("🙂", "emoji and symbols", "fonts-symbola"),
        ("\U000f0000", "private characters", "the one that was made for them"),
        ("猫क", "Devanagari, Chinese", "fonts-noto-cjk"),
    ],
)
def test_the_missing_script_and_a_font_for_it_are_named(text: str, names: str, font: str) -> None:
    sentence = unreadable({ord(letter) for letter in text})
    assert f"No installed font has this script: {names}. " in sentence
    assert font in sentence
    assert ".svg" in sentence
