from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.pictures.arcs import draw_sentence_arcs, sentence_arcs_svg
from regard.pictures.labels import label_width, word_centres

WORDS = ["the", "cat", "saw", "it"]
WEIGHTS = np.array(
    [[0.9, 0.1, 0.0, 0.0], [0.05, 0.05, 0.9, 0.0], [0.2, 0.2, 0.2, 0.4], [0.0, 0.9, 0.1, 0.0]]
)


def test_all_words_and_the_strong_arcs_are_drawn(tmp_path: Path) -> None:
    drawn = sentence_arcs_svg(WEIGHTS, words=WORDS, title="a sentence")
    for word in (*WORDS, "a sentence"):
        assert word in drawn
    # A patch for each weight from 0.1 on that leads to another word, and one for the ground.
    assert drawn.count('id="patch_') == 7 + 1
    draw_sentence_arcs(WEIGHTS, words=WORDS, path=tmp_path / "arcs.png")
    assert (tmp_path / "arcs.png").stat().st_size > 1_000


def test_a_right_to_left_sentence_begins_at_the_right() -> None:
    drawn = sentence_arcs_svg(np.eye(2)[::-1].copy(), words=["כלב", "חתול"])
    first, second = (
        float(re.search(rf' x="([\d.]+)"[^>]*>\u200f{word}', drawn)[1]) for word in ("כלב", "חתול")
    )
    assert first > second


def test_a_single_word_has_no_arcs() -> None:
    drawn = sentence_arcs_svg(np.ones((1, 1)), words=["lonely"])
    assert ">lonely</text>" in drawn
    assert drawn.count('id="patch_') == 1  # the background


def test_all_weights_are_in_the_data(tmp_path: Path) -> None:
    draw_sentence_arcs(WEIGHTS, words=WORDS, path=tmp_path / "arcs.json")
    rows = json.loads((tmp_path / "arcs.json").read_text())
    assert len(rows) == 16
    assert sum(row["weight"] for row in rows if row["target"] == "it") == pytest.approx(1.0)


def test_weights_must_fit_the_words() -> None:
    with pytest.raises(RegardError, match="do not fit"):
        sentence_arcs_svg(np.ones((3, 3)), words=["a", "b"])


def test_wide_characters_count_as_two_letters() -> None:
    assert (label_width("cat"), label_width("猫"), label_width("e\u0301")) == (3, 2, 1)
    centres, width = word_centres(["ab", "猫"])
    assert (centres, width) == ([1.0, 5.0], 8.0)
