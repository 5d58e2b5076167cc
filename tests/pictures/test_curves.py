from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.pictures.curves import (
    draw_learning_curves,
    draw_length_curves,
    learning_curves_svg,
    length_curves_svg,
)
from regard.scoring.bleu import Band
from regard.scoring.measures import Score


def band(low: int, value: float | None) -> Band:
    score = None if value is None else Score("BLEU", value, "tok:13a")
    return Band(low=low, high=low + 9, sentences=5, score=score)


BANDS = {
    "plain": [band(1, 60.0), band(11, 30.0), band(21, None)],
    "attention": [band(1, 95.0), band(11, 93.0), band(21, 90.0)],
}
HISTORY = [
    {"kind": "train", "step": 20, "seconds": 6.0, "loss": 4.0},
    {"kind": "valid", "step": 20, "seconds": 7.0, "loss": 3.9, "bleu": 10.0},
    {"kind": "train", "step": 40, "seconds": 12.0, "loss": math.nan},
    {"kind": "train", "step": 60, "seconds": 18.0, "loss": None},
    {"kind": "valid", "step": 60, "seconds": 19.0, "loss": 2.0, "bleu": 40.0},
    {"kind": "end", "step": 60, "seconds": 19.0, "reason": "patience"},
]


def texts_of(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_curves_are_written_and_always_the_same(tmp_path: Path, suffix):
    contents = []
    for attempt in ("first", "second"):
        length, learning = tmp_path / f"{attempt}a{suffix}", tmp_path / f"{attempt}b{suffix}"
        draw_length_curves(BANDS, length, title="BLEU by length")
        draw_learning_curves({"plain": HISTORY}, learning, title="Learning")
        contents.append((length.read_bytes(), learning.read_bytes()))
    assert contents[0] == contents[1]


def test_length_curves_name_models_and_bands():
    texts = texts_of(length_curves_svg(BANDS, title="BLEU by length"))
    assert {"plain", "attention", "1–10", "11–20", "21–30", "BLEU by length"} <= set(texts)


def test_models_with_other_bands_share_the_axis():
    texts = texts_of(length_curves_svg({"a": [band(1, 5.0)], "b": [band(31, 6.0)]}))
    assert [text for text in texts if "–" in text] == ["1–10", "31–40"]


def test_more_models_than_colours_can_be_drawn():
    names = [f"model {number}" for number in range(12)]
    texts = texts_of(length_curves_svg(dict.fromkeys(names, BANDS["plain"])))
    assert [text for text in texts if text.startswith("model")] == names


def test_learning_curves_show_bleu_only_where_it_was_measured():
    without = [{key: row[key] for key in row if key != "bleu"} for row in HISTORY]
    assert "validation BLEU" in texts_of(learning_curves_svg({"plain": HISTORY}))
    assert "validation BLEU" not in texts_of(learning_curves_svg({"plain": without}))


def test_learning_may_be_drawn_against_time():
    assert "updates" in texts_of(learning_curves_svg({"plain": HISTORY}))
    texts = texts_of(learning_curves_svg({"plain": HISTORY}, against="minutes"))
    assert "minutes of training" in texts


def test_nothing_cannot_be_drawn(tmp_path: Path):
    with pytest.raises(RegardError, match="no length bands to draw"):
        draw_length_curves({"plain": []}, tmp_path / "a.png")
    with pytest.raises(RegardError, match="no training history to draw"):
        draw_learning_curves({}, tmp_path / "a.png")


@pytest.mark.parametrize(
    ("measure", "label"),
    [("accuracy", "validation accuracy"), ("bits_per_character", "validation bits a character"),
     ("perplexity", "validation perplexity")],
)  # fmt: skip
def test_whatever_validation_measures_is_drawn(measure: str, label: str):
    rows = [{"kind": "valid", "step": n, "seconds": 1.0, "loss": 1.0, measure: 2.0} for n in (1, 2)]
    assert label in texts_of(learning_curves_svg({"run": rows}))


def test_the_data_can_be_written_as_tables(tmp_path: Path):
    draw_length_curves(BANDS, tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == "model,low,high,sentences,bleu"
    assert lines[3] == "plain,21,30,5,"
    draw_learning_curves({"plain": HISTORY}, tmp_path / "b.csv")
    lines = (tmp_path / "b.csv").read_text().splitlines()
    assert lines[0] == "model,kind,step,seconds,loss,bleu,reason"
    assert len(lines) == 1 + len(HISTORY)
