from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib
import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.pictures import labels
from regard.pictures.canvas import Records, figure_in_full, figure_svg, render, save_figure
from regard.pictures.labels import OWN_FAMILY, UnreadableScriptWarning


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


def draw_words() -> Figure:
    figure = Figure(figsize=(1, 1))
    for place, word in enumerate(["\U000f0000", "猫", "ok"]):
        figure.text(0, place / 5, word)
    return figure


@pytest.mark.parametrize("format", ["png", "pdf"])
def test_a_script_without_a_font_is_named_and_does_not_stop_the_picture(format, monkeypatch):
    monkeypatch.setattr(labels, "families_with", lambda characters: [])
    monkeypatch.setattr(labels, "preferred_families", lambda: [OWN_FAMILY])
    with pytest.warns(UnreadableScriptWarning, match="script: Chinese, private characters"):
        assert render(draw_words, format)
    with pytest.warns(UnreadableScriptWarning):
        assert figure_in_full(draw_words).texts


def test_svg_files_use_the_fonts_of_the_viewer():
    assert "猫" in figure_svg(draw_words)


def test_an_installed_font_that_has_a_missing_script_is_drawn_with(monkeypatch, font_with_cat):
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(font_with_cat)])
    monkeypatch.setattr(labels, "preferred_families", lambda: [OWN_FAMILY])

    def draw_cat() -> Figure:
        figure = Figure(figsize=(1, 1))
        figure.text(0, 0, "猫")
        return figure

    assert render(draw_cat, "png")  # a warning would be an error


def test_other_warnings_of_a_drawing_are_not_hidden():
    def draw_badly() -> Figure:
        warnings.warn("a doubt", RuntimeWarning, stacklevel=1)
        return Figure(figsize=(1, 1))

    with pytest.warns(RuntimeWarning, match="a doubt"):
        render(draw_badly, "svg")


def test_punctuation_of_a_right_to_left_text_stays_at_its_end_in_svg():
    def draw_arabic() -> Figure:
        figure = Figure(figsize=(1, 1))
        figure.text(0, 0, "الكلاب،")
        figure.text(0, 1, "dogs,")
        return figure

    drawn = figure_svg(draw_arabic)
    assert "\u200fالكلاب،\u200f</text>" in drawn
    assert ">dogs,</text>" in drawn


def test_the_data_of_a_picture_comes_by_the_suffix(tmp_path: Path):
    records = Records(("word", "weight"), [("a", 0.5), ("b", None)])
    save_figure(draw, tmp_path / "x.csv", data=lambda: records)
    assert (tmp_path / "x.csv").read_text() == "word,weight\na,0.5\nb,\n"
    with pytest.raises(RegardError, match=r"\.png, \.svg, \.pdf, \.csv, \.json\."):
        save_figure(draw, tmp_path / "x.gif", data=lambda: records)


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


# Imports every module of the pictures and prints the functions of theirs that were called.
WATCH_IMPORTS = """
import inspect, pkgutil, sys
import regard.pictures
called = []
def watch(frame, event, argument):
    code = frame.f_code
    ours = "regard/pictures/" in code.co_filename.replace("\\\\", "/")
    if event == "call" and ours and code.co_flags & inspect.CO_OPTIMIZED:
        called.append(code.co_qualname if hasattr(code, "co_qualname") else code.co_name)
sys.setprofile(watch)
for module in pkgutil.iter_modules(regard.pictures.__path__, "regard.pictures."):
    __import__(module.name)
sys.setprofile(None)
print(*called)
"""


def test_importing_the_pictures_calls_none_of_their_functions() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCH_IMPORTS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
