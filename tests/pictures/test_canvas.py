from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.pictures import canvas
from regard.pictures.canvas import figure_svg, render, save_figure


def draw() -> Figure:
    figure = Figure(figsize=(2, 1))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.plot([0, 1], [0, 1], marker="o")
    axes.set_title("grüße $5 and $6")
    return figure


def test_settings_of_the_user_neither_matter_nor_change():
    before = render(draw, "svg")
    with matplotlib.rc_context({"font.size": 30, "text.usetex": True, "svg.hashsalt": None}):
        assert render(draw, "svg") == before
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.parametrize("format", ["png", "svg", "pdf"])
def test_the_same_figure_gives_the_same_bytes(format):
    assert render(draw, format) == render(draw, format)


def test_pictures_hold_no_date_and_no_markup_is_taken_from_words():
    text = figure_svg(draw)
    assert "date" not in text
    assert "grüße $5 and $6" in text


@pytest.mark.parametrize("format", ["png", "svg", "pdf"])
def test_a_script_without_a_font_does_not_stop_the_picture(format):
    def draw_words() -> Figure:
        figure = Figure(figsize=(1, 1))
        for place, word in enumerate(["日本語", "नमस्ते", "🙂", "ߒߞߏ", "\U000f0000"]):
            figure.text(0, place / 5, word)
        return figure

    assert render(draw_words, format)


def test_installed_fonts_are_looked_up_after_the_own_one(monkeypatch):
    monkeypatch.setattr(canvas, "_installed_families", lambda: ("Noto Sans CJK SC",))
    assert canvas._families("png") == ["DejaVu Sans", "Noto Sans CJK SC"]
    assert canvas._families("svg") == ["sans-serif"]


def test_folders_are_made(tmp_path: Path):
    save_figure(draw, tmp_path / "new" / "folder" / "picture.PNG")
    assert (tmp_path / "new" / "folder" / "picture.PNG").read_bytes().startswith(b"\x89PNG")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RegardError, match=r"picture\.png: cannot be written \(File exists\)"):
        save_figure(draw, tmp_path / "file" / "picture.png")


@pytest.mark.parametrize("name", ["picture.gif", "picture"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path: Path, name):
    with pytest.raises(RegardError, match=r"suffix '.*'\. Choose one of: \.png, \.svg, \.pdf\."):
        save_figure(draw, tmp_path / name)
