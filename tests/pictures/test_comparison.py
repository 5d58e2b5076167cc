from __future__ import annotations

import csv
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.pictures.curves import draw_interval_curves, interval_curves_svg, write_interval_curves
from regard.scoring.bleu import Band
from regard.scoring.bootstrap import BandWithInterval, Interval
from regard.scoring.measures import Score


def band(low: int, value: float | None) -> BandWithInterval:
    score = None if value is None else Score("BLEU", value, "tok:13a")
    interval = None if value is None else Interval(value - 3.0, value + 2.0)
    return BandWithInterval(Band(low=low, high=low + 9, sentences=5, score=score), interval)


BANDS = {
    "no attention": [band(1, 60.0), band(11, 30.0), band(21, None)],
    "Transformer": [band(1, 95.0), band(11, 93.0), band(21, 90.0)],
}


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_picture_is_written_and_always_the_same(tmp_path: Path, suffix: str):
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    draw_interval_curves(BANDS, first, title="BLEU by length")
    draw_interval_curves(BANDS, second, title="BLEU by length")
    assert first.read_bytes() == second.read_bytes()


def test_it_names_models_bands_and_what_the_shade_is():
    svg = interval_curves_svg(BANDS, title="BLEU by length")
    for wanted in (*BANDS, "1–10", "21–30", "95 % of resampled", "BLEU by length"):
        assert wanted in svg, wanted


def test_more_models_than_colours_can_be_drawn():
    names = [f"model {number}" for number in range(10)]
    svg = interval_curves_svg(dict.fromkeys(names, BANDS["Transformer"]))
    assert all(f">{name}</text>" in svg for name in names)


def test_the_data_can_be_written_as_a_table(tmp_path: Path):
    path = tmp_path / "by-length.csv"
    write_interval_curves(BANDS, path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert rows[0] == {"model": "no attention", "low": "1", "high": "10", "sentences": "5",
                       "bleu": "60.0", "bleu_low": "57.0",
                       "bleu_high": "62.0"}  # fmt: skip
    assert rows[2]["bleu"] == rows[2]["bleu_low"] == ""


def test_nothing_cannot_be_drawn(tmp_path: Path):
    for draw in (draw_interval_curves, write_interval_curves):
        with pytest.raises(RegardError, match="no length bands to draw"):
            draw({"plain": []}, tmp_path / "a.csv")
