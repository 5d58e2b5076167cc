from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.pictures.studies import LadderBar, draw_gradients, draw_ladder


def test_the_ladder_has_a_bar_for_each_step(tmp_path: Path) -> None:
    steps = [
        LadderBar("0  gated", "h_t = ...", 0.15, "12 parameters"),
        LadderBar("1  free", "f", 0.9, "20"),
    ]
    path = tmp_path / "ladder.svg"
    draw_ladder(steps, path, levels=[("guessing", 0.17)], title="The ladder")
    text = path.read_text()
    for wanted in (
        "0  gated",
        "15.0 %",
        "90.0 %",
        "hₜ = ...",
        "guessing",
        "12 parameters",
        "The ladder",
    ):
        assert wanted in text, wanted


def test_each_moment_has_a_panel_with_a_curve_for_each_network(
    tmp_path: Path,
) -> None:
    curves = {"tanh RNN": [1.0, 1e-3, 0.0], "LSTM": [1.0, 0.9, 0.8]}
    path = tmp_path / "gradients.svg"
    draw_gradients({"before": curves, "after": curves}, path, title="How far?")
    text = path.read_text()
    for wanted in ("tanh RNN", "LSTM", "before", "after", "10⁻²", "How far?"):
        assert wanted in text, wanted


def test_nothing_to_draw_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="no steps to draw"):
        draw_ladder([], tmp_path / "x.png")
    with pytest.raises(RegardError, match="no gradients to draw"):
        draw_gradients({"before": {}}, tmp_path / "x.png")


def test_the_data_can_be_written_as_tables(tmp_path: Path) -> None:
    draw_ladder([LadderBar("0", "f", 0.5, "n")], tmp_path / "l.csv")
    assert (tmp_path / "l.csv").read_text() == "label,formula,accuracy,note\n0,f,0.5,n\n"
    draw_gradients({"before": {"LSTM": [1.0, 0.5]}}, tmp_path / "g.csv")
    assert (tmp_path / "g.csv").read_text().splitlines()[2] == "before,LSTM,1,0.5"
