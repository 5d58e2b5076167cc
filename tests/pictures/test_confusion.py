from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.pictures.heat_map import confusion_svg, draw_confusion

COUNTS = np.array([[8, 2], [0, 0]])


def test_labels_and_counts_are_drawn(tmp_path: Path) -> None:
    drawn = confusion_svg(COUNTS, labels=["<good>", "bad"], title="test")
    for text in ("&lt;good&gt;", "bad", ">8<", ">2<", "predicted", "true", ">test<"):
        assert text in drawn
    draw_confusion(COUNTS, labels=["good", "bad"], path=tmp_path / "c.png")
    assert (tmp_path / "c.png").stat().st_size > 1_000


def test_many_labels_have_no_counts() -> None:
    drawn = confusion_svg(np.full((21, 21), 77), labels=[f"l{number}" for number in range(21)])
    assert ">77<" not in drawn


def test_the_counts_can_be_written_as_a_table(tmp_path: Path) -> None:
    draw_confusion(COUNTS, labels=["good", "bad"], path=tmp_path / "c.csv")
    lines = (tmp_path / "c.csv").read_text().splitlines()
    assert lines[:3] == ["true,predicted,count", "good,good,8", "good,bad,2"]


def test_counts_must_fit_the_labels() -> None:
    with pytest.raises(RegardError, match=r"counts of shape \(2, 2\) do not fit 3 labels"):
        confusion_svg(COUNTS, labels=["a", "b", "c"])
