from __future__ import annotations

import csv
import json
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.pictures.canvas import colour_on_light, hexadecimal
from regard.pictures.heat_map import (
    draw_heat_map,
    heat_map_figure,
    heat_map_svg,
    save_data,
    write_map,
)
from regard.pictures.labels import RIGHT_TO_LEFT_MARK, readable_label

SOURCE = ["Katzen", "mögen", "keine", "Hunde"]
TARGET = ["cats", "do", "not", "like", "dogs"]
WEIGHTS = np.eye(5, 4) * 0.75 + 0.05
SVG = "{http://www.w3.org/2000/svg}"
FULL_COLOUR = f"fill: {hexadecimal(colour_on_light(1.0))}"


def texts_of(svg: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def cells_of(svg: str) -> list[ElementTree.Element]:
    """Return the cells of the map, without those of its scale."""
    meshes = [
        group
        for group in ElementTree.fromstring(svg).iter(f"{SVG}g")
        if (group.get("id") or "").startswith("QuadMesh")
    ]
    return list(meshes[0].iter(f"{SVG}path"))


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_the_suffix_chooses_the_format(tmp_path: Path, suffix, start):
    path, again = tmp_path / f"map{suffix}", tmp_path / f"again{suffix}"
    for place in (path, again):
        draw_heat_map(WEIGHTS, source=SOURCE, target=TARGET, path=place, title="cats")
    assert path.read_bytes().startswith(start)
    assert path.read_bytes() == again.read_bytes()


def test_every_word_is_there():
    texts = texts_of(heat_map_svg(WEIGHTS, source=SOURCE, target=TARGET, title="Title"))
    assert set(SOURCE + TARGET + ["Title"]) <= set(texts)


def test_a_single_cell_is_one_coloured_square_with_two_labels():
    svg = heat_map_svg(np.ones((1, 1)), source=["only source"], target=["only target"])
    assert {"only source", "only target"} <= set(texts_of(svg))
    (cell,) = cells_of(svg)
    assert FULL_COLOUR in cell.get("style", "")


def test_precision_does_not_change_the_picture():
    single, double = (
        heat_map_svg(np.eye(2, dtype=dtype), source=["a", "b"], target=["c", "d"])
        for dtype in (np.float32, np.float64)
    )
    assert single == double


def test_a_right_to_left_source_begins_at_the_right():
    def place(svg: str, word: str) -> float:
        found = [
            text
            for text in ElementTree.fromstring(svg).iter(f"{SVG}text")
            if word in (text.text or "")
        ]
        return float(found[0].get("x"))

    words = ["القطط", "لا", "تحب", "الكلاب"]
    drawn = heat_map_svg(WEIGHTS, source=words, target=TARGET)
    assert place(drawn, "القطط") > place(drawn, "لا") > place(drawn, "الكلاب")
    drawn = heat_map_svg(WEIGHTS, source=SOURCE, target=TARGET)
    assert place(drawn, "Katzen") < place(drawn, "mögen") < place(drawn, "Hunde")


def test_the_figure_of_a_notebook_shows_every_label_whole():
    figure = heat_map_figure(WEIGHTS, source=SOURCE, target=TARGET, title="a rather long title")
    needed, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert 0 < needed.x0 < needed.x1 < width
    assert 0 < needed.y0 < needed.y1 < height


def test_the_picture_grows_with_the_words(tmp_path: Path):
    def pixels(size: int) -> int:
        path = tmp_path / f"{size}.png"
        words = [f"w{number}" for number in range(size)]
        draw_heat_map(np.full((size, size), 0.1), source=words, target=words, path=path)
        width, _ = struct.unpack(">II", path.read_bytes()[16:24])
        return width

    assert pixels(4) < pixels(12) < pixels(40)


@settings(deadline=None, max_examples=15)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=4))
def test_any_words_give_valid_xml(words):
    weights = np.full((len(words), len(words)), 1 / len(words))
    svg = heat_map_svg(weights, source=words, target=words, title="".join(words))
    assert len(cells_of(svg)) == len(words) ** 2
    marks = RIGHT_TO_LEFT_MARK
    labels = [text.strip(marks) for text in texts_of(svg)]
    assert all(labels.count(readable_label(word).strip(marks)) >= 2 for word in words)


def test_markup_and_mathematics_in_words_are_only_text():
    words = ["<script>alert(1)</script>"[:24], r"$\frac$", "a&b"]
    texts = texts_of(heat_map_svg(np.eye(3), source=words, target=words))
    assert set(words) <= set(texts)


def test_csv_has_a_row_for_each_target_word(tmp_path: Path):
    path = tmp_path / "map.csv"
    save_data(WEIGHTS, source=['"quoted"', "a,b", "c", "d"], target=TARGET, path=path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["", '"quoted"', "a,b", "c", "d"]
    assert [row[0] for row in rows[1:]] == TARGET
    np.testing.assert_array_equal(np.array([row[1:] for row in rows[1:]], dtype=float), WEIGHTS)


def test_json_holds_words_and_weights(tmp_path: Path):
    save_data(WEIGHTS, source=SOURCE, target=TARGET, path=tmp_path / "map.json")
    record = json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))
    assert record == {"source": SOURCE, "target": TARGET, "weights": WEIGHTS.tolist()}


@pytest.mark.parametrize(
    ("suffix", "start"),
    [
        (".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".csv", b",Katzen,"),
        (".json", b"{"), (".SVG", b"<?xml"), (".JSON", b"{"),
    ],
)  # fmt: skip
def test_a_map_is_written_in_the_format_of_its_suffix(tmp_path: Path, suffix, start):
    path = tmp_path / f"map{suffix}"
    write_map(WEIGHTS, source=SOURCE, target=TARGET, path=path, title="cats")
    assert path.read_bytes().startswith(start)


def test_unknown_suffixes_are_refused_with_the_known_ones(tmp_path: Path):
    with pytest.raises(RegardError, match=r"'\.gif'\. .*: \.png, \.svg, \.pdf, \.csv, \.json\."):
        write_map(WEIGHTS, source=SOURCE, target=TARGET, path=tmp_path / "map.gif")
    with pytest.raises(RegardError, match=r"'\.png'\. Choose one of: \.csv, \.json\."):
        save_data(WEIGHTS, source=SOURCE, target=TARGET, path=tmp_path / "map.png")


def test_words_that_do_not_fit_are_refused_before_anything_is_written(tmp_path: Path):
    with pytest.raises(RegardError, match="do not fit"):
        write_map(WEIGHTS, source=SOURCE, target=SOURCE, path=tmp_path / "map.png")
    assert not list(tmp_path.iterdir())


def test_drawing_imports_neither_pyplot_nor_torch():
    program = (
        "import sys, regard.pictures.curves, regard.pictures.report;"
        "sys.exit(bool({'torch', 'matplotlib.pyplot'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
