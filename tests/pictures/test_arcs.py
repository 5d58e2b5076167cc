from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.pictures.arcs import WordAttention, arcs_svg, draw_arcs

WORDS = ["the", "animal", "saw", "the", "street", "because", "it", "was", "tired"]


def attention(words: list[str] = WORDS, place: int = 6, **weights: float) -> WordAttention:
    values = np.array([weights.get(word, 0.01) for word in words])
    return WordAttention(words, place, values, note="das Tier sah die Straße , weil es müde war")


def test_every_word_is_there_and_strong_arcs_have_numbers(tmp_path: Path) -> None:
    path = tmp_path / "arcs.svg"
    draw_arcs(
        [attention(animal=0.8), attention(street=0.6, animal=0.05)], path, title="What it means"
    )
    text = path.read_text()
    for wanted in (*WORDS, "0.80", "0.60", "weil es müde war", "What it means"):
        assert wanted in text, wanted
    assert "0.05" not in text


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_a_word_that_attends_only_to_itself_can_be_drawn(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"arcs{suffix}"
    draw_arcs([WordAttention(["it"], 0, np.ones(1))], path)
    assert path.stat().st_size > 500


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "arcs.svg"
    with pytest.raises(RegardError, match="no sentences to draw"):
        draw_arcs([], path)
    with pytest.raises(RegardError, match="3 weights do not fit 9 words: each word needs one"):
        draw_arcs([WordAttention(WORDS, 6, np.ones(3))], path)
    with pytest.raises(RegardError, match="place 9 is outside the sentence of 9 words"):
        draw_arcs([attention(place=9)], path)


def test_the_weights_can_be_written_as_a_table(tmp_path: Path) -> None:
    path = tmp_path / "arcs.json"
    draw_arcs([attention(animal=0.8)], path)
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert len(rows) == len(WORDS)
    assert rows[1]["from"] == "it"
    assert (rows[1]["to"], rows[1]["to_place"], rows[1]["weight"]) == ("animal", 1, 0.8)


def test_a_right_to_left_sentence_begins_at_the_right() -> None:
    words = ["הכלב", "לא", "חצה"]
    drawn = arcs_svg([WordAttention(words, 0, np.array([0.1, 0.2, 0.7]), note="כן")])
    places = {
        word: float(re.search(rf' x="([\d.]+)"[^>]*>\u200f{word}', drawn)[1]) for word in words
    }
    assert places["הכלב"] > places["לא"] > places["חצה"]
