from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.pictures.head_grid import draw_head_grid, head_grid_svg

WEIGHTS = np.tril(np.full((2, 3, 4, 4), 0.25))
WORDS = ["the", "cat", "$at", "猫"]


def test_every_layer_and_head_is_drawn(tmp_path: Path) -> None:
    drawn = head_grid_svg(WEIGHTS, source=WORDS, target=WORDS, title="a title")
    for layer in range(2):
        for head in range(3):
            assert f"layer {layer}, head {head}" in drawn
    assert "a title" in drawn
    assert "$at" in drawn
    latin = ["the", "cat", "sat", "down"]
    draw_head_grid(WEIGHTS, source=latin, target=latin, path=tmp_path / "heads.png")
    assert (tmp_path / "heads.png").stat().st_size > 1_000


def test_the_heads_of_one_layer_are_drawn_in_rows_with_its_number(tmp_path: Path) -> None:
    weights = np.full((1, 6, 2, 3), 0.3)
    drawn = head_grid_svg(weights, source=["a", "b", "c"], target=["x", "y"], first_layer=4)
    assert "layer 4, head 5" in drawn
    path = tmp_path / "heads.csv"
    draw_head_grid(weights, source=["a", "b", "c"], target=["x", "y"], path=path, first_layer=4)
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + 6 * 2 * 3
    assert lines[-1] == "4,5,1,y,2,c,0.3"


def place_of(word: str, svg: str) -> float:
    """Return the horizontal position of a label that is drawn upright."""
    found = re.search(rf"translate\(([\d.]+) [^>]*>\u200f?{word}\u200f?</text>", svg)
    assert found
    return float(found[1])


def test_right_to_left_words_are_drawn_from_the_right() -> None:
    drawn = head_grid_svg(np.ones((1, 1, 1, 2)), source=["א", "ב"], target=["a"])
    first, second = (place_of(word, drawn) for word in "אב")
    assert first > second
    drawn = head_grid_svg(np.ones((1, 1, 1, 2)), source=["x", "y"], target=["a"])
    first, second = (place_of(word, drawn) for word in "xy")
    assert first < second


def test_many_words_have_no_labels() -> None:
    weights, words = np.zeros((1, 1, 30, 30)), ["word"] * 30
    assert "word" not in head_grid_svg(weights, source=words, target=words)


def test_what_does_not_fit() -> None:
    with pytest.raises(RegardError, match="do not fit 4 target words and 3 source words"):
        head_grid_svg(WEIGHTS, source=WORDS[:3], target=WORDS)
