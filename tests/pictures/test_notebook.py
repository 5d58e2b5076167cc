from __future__ import annotations

import re

import numpy as np

from regard.pictures.heat_map import heat_map_svg
from regard.pictures.svg import notebook_lines, notebook_picture

ATTACK = '<img src=x onerror="alert(1)">'


def test_a_picture_has_ids_of_its_own_and_the_colours_of_the_page() -> None:
    one, other = (
        notebook_picture(heat_map_svg(np.eye(1), source=[word], target=["b"]), label="a map")
        for word in ("one", "other")
    )
    ids = [set(re.findall(r' id="([^"]+)"', page)) for page in (one, other)]
    assert ids[0] and not ids[0] & ids[1]
    assert "currentColor" in one
    assert "<style" not in one
    assert "http" not in one.replace("http://www.w3.org/", "")


def test_untrusted_texts_are_escaped() -> None:
    drawn = notebook_picture(heat_map_svg(np.eye(1), source=[ATTACK], target=["b"]), label=ATTACK)
    assert "<img" not in drawn + notebook_lines((ATTACK, ATTACK))


def test_lines_have_names_and_their_own_direction() -> None:
    shown = notebook_lines(("source", "חתול"), ("target", "cat"))
    assert shown.count('dir="auto"') == 2
    assert "source" in shown and "חתול" in shown
