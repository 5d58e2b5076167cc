from __future__ import annotations

import csv
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.pictures.curves import draw_sure_curves, sure_curves_svg, write_sure_curves
from regard.scoring.bleu import Band
from regard.scoring.bootstrap import Interval, SureBand
from regard.scoring.score import Score


def sure(low: int, value: float | None) -> SureBand:
    score = None if value is None else Score("BLEU", value, "tok:13a")
    interval = None if value is None else Interval(value - 3.0, value + 2.0)
    return SureBand(Band(low=low, high=low + 9, sentences=5, score=score), interval)


BANDS = {
    "no attention": [sure(1, 60.0), sure(11, 30.0), sure(21, None)],
    "Transformer": [sure(1, 95.0), sure(11, 93.0), sure(21, 90.0)],
}


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_picture_is_written_and_always_the_same(tmp_path: Path, suffix: str):
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    draw_sure_curves(BANDS, first, title="BLEU by length")
    draw_sure_curves(BANDS, second, title="BLEU by length")
    assert first.read_bytes() == second.read_bytes()


def test_it_names_models_bands_and_what_the_shade_is():
    svg = sure_curves_svg(BANDS, title="BLEU by length")
    for wanted in (*BANDS, "1–10", "21–30", "95 % of resampled", "BLEU by length"):
        assert wanted in svg, wanted


def test_more_models_than_colours_can_be_drawn():
    assert sure_curves_svg({f"model {number}": BANDS["Transformer"] for number in range(10)})


def test_the_numbers_behind_it(tmp_path: Path):
    path = tmp_path / "by-length.csv"
    write_sure_curves(BANDS, path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert rows[0] == {"model": "no attention", "low": "1", "high": "10", "sentences": "5",
                       "bleu": "60.0", "bleu_low": "57.0",
                       "bleu_high": "62.0"}  # fmt: skip
    assert rows[2]["bleu"] == rows[2]["bleu_low"] == ""


def test_nothing_cannot_be_drawn(tmp_path: Path):
    for draw in (draw_sure_curves, write_sure_curves):
        with pytest.raises(RegardError, match="no length bands to draw"):
            draw({"plain": []}, tmp_path / "a.csv")
