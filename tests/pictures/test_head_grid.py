from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.pictures.head_grid import draw_head_grid, head_grid_svg

WEIGHTS = np.tril(np.full((2, 3, 4, 4), 0.25))
WORDS = ["the", "cat", "$at", "猫"]


def test_every_layer_and_head_is_drawn(tmp_path: Path) -> None:
    drawn = head_grid_svg(WEIGHTS, words=WORDS, title="a title")
    for layer in range(2):
        for head in range(3):
            assert f"layer {layer}, head {head}" in drawn
    assert "a title" in drawn
    assert "$at" in drawn
    draw_head_grid(WEIGHTS, words=WORDS, path=tmp_path / "heads.png")
    assert (tmp_path / "heads.png").stat().st_size > 1_000


def test_many_words_go_without_labels() -> None:
    weights = np.zeros((1, 1, 30, 30))
    assert "word" not in head_grid_svg(weights, words=["word"] * 30)


def test_what_does_not_fit() -> None:
    with pytest.raises(RegardError, match="do not fit 3 words"):
        head_grid_svg(WEIGHTS, words=WORDS[:3])
