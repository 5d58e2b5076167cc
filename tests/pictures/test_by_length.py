from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.pictures.studies import LengthPanel, draw_by_length

CURVES = {"rotary": {5: 100.0, 20: 98.0, 40: 60.0}, "learned": {5: 100.0, 20: 97.0, 40: 10.0}}


def test_each_curve_and_the_marked_length_are_named(tmp_path: Path) -> None:
    path = tmp_path / "lengths.svg"
    draw_by_length(
        [LengthPanel(label="right, %", curves=CURVES, top=100.0)],
        path,
        mark=(20, "longest in training"),
        title="How far?",
    )
    text = path.read_text()
    for wanted in ("rotary", "learned", "right, %", "longest in training", "How far?", ">40<"):
        assert wanted in text, wanted


def test_logarithmic_panels_label_the_lengths(tmp_path: Path) -> None:
    path = tmp_path / "cost.svg"
    curves = {"full": {128: 1.0, 4096: 900.0}, "linear": {128: 0.9, 4096: 30.0}}
    panel = LengthPanel(label="time", curves=curves, powers=True)
    draw_by_length([panel, LengthPanel(label="memory, MB", curves=curves, powers=True)], path)
    text = path.read_text()
    for wanted in (">128<", ">4096<", ">100<", "time", "memory, MB"):
        assert wanted in text, wanted


def test_nothing_to_draw_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="no lengths to draw"):
        draw_by_length([LengthPanel(label="x", curves={"full": {}})], tmp_path / "x.png")
