from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.pictures.report import (
    Fold,
    Heading,
    HoverMap,
    Paragraph,
    Passage,
    Sample,
    Samples,
    Table,
)
from regard.pictures.svg import escaped


def test_texts_are_escaped():
    attack = "<script>alert('x')</script>&\"\0"
    assert escaped(attack) == "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;&quot;�"
    assert Paragraph("a < b").to_html(1) == "<p>a &lt; b</p>"
    assert Heading("R&D").to_html(3) == '<h2 id="part-3">R&amp;D</h2>'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (31.204, '<td class="number">31.20</td>'),
        (1234567, '<td class="number">1,234,567</td>'),
        (None, "<td>–</td>"),
        ("<b>", "<td>&lt;b&gt;</td>"),
        (True, "<td>True</td>"),
    ],
)
def test_a_table_formats_its_values(value, shown):
    assert shown in Table("scores", ["value"], [[value]]).to_html(1)


def test_a_missing_number_is_aligned_like_numbers():
    written = Table("scores", ["model", "BLEU"], [["plain", 1.0], ["other", None]]).to_html(1)
    assert '<td class="number">–</td>' in written
    assert '<th scope="col" class="number">BLEU</th>' in written


def test_a_row_must_fit_its_header():
    table = Table("scores", ["model", "BLEU"], [["plain"]])
    with pytest.raises(RegardError, match="'scores': a row of 1 values does not fit a header of 2"):
        table.to_html(1)


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        pytest.param("die Katze schläft", 'die Katze schläft <span class="right"', id="right"),
        pytest.param("die Katze", '<dd dir="auto">die Katze</dd>', id="words missing"),
        pytest.param("der Hund schläft", "<mark>der Hund</mark> schläft", id="wrong words"),
        pytest.param("", "<mark>(nothing)</mark>", id="nothing"),
        pytest.param("<mark>", "<mark>&lt;mark&gt;</mark>", id="markup"),
    ],
)
def test_samples_mark_what_the_reference_does_not_have(output, shown):
    row = Sample("the cat sleeps", "die Katze schläft", {"plain": output, "attention": "x"})
    written = Samples([row]).to_html(1)
    assert shown in written
    assert "<dt>plain</dt>" in written
    assert "<dt>attention</dt>" in written


def test_a_hover_map_carries_weights_and_words():
    weights = np.array([[0.75, 0.25], [0.1, 0.9]], dtype=np.float32)
    written = HoverMap(["a", '"b"'], ["<c>", " "], weights, "a map").to_html(1)
    data = re.search(r'data-weights="([^"]+)"', written)
    np.testing.assert_allclose(json.loads(html.unescape(data[1])), weights, atol=1e-4)
    assert re.findall(r'<button[^>]*data-target="(\d)"[^>]*>([^<]*)<', written) == [
        ("0", "&lt;c&gt;"),
        ("1", "␣"),
    ]
    assert re.findall(r"--w:([0-9.]+)", written) == ["0.833", "0.278", "0.111", "1"]
    assert "many" not in written


def test_long_sentences_get_small_cells():
    words = [f"w{number}" for number in range(30)]
    assert 'class="grid many" ' in HoverMap(words, ["a"], np.ones((1, 30)), "").to_html(1)


def test_a_hover_map_must_fit_its_words():
    with pytest.raises(RegardError, match="do not fit"):
        HoverMap(["a"], ["b"], np.ones((2, 2)), "").to_html(1)


def test_a_passage_keeps_its_lines():
    written = Passage("a <text>", "one\n  <two>\n").to_html(1)
    assert "<pre" in written
    assert "one\n  &lt;two&gt;</pre>" in written
    assert "a &lt;text&gt;" in written


def test_a_fold_holds_parts_with_numbers_of_their_own():
    written = Fold("more & more", [Heading("one"), Fold("two", [Heading("three")])]).to_html(7)
    assert written.startswith("<details><summary>more &amp; more</summary>")
    assert re.findall(r'id="part-(\d+)"', written) == ["7001", "7002001"]


def test_a_note_is_shown_next_to_the_source():
    written = Samples([Sample("a", "b", {}, note="chrF <3")]).to_html(1)
    assert 'a <span class="note">chrF &lt;3</span></dd>' in written


def test_columns_of_a_right_to_left_source_run_from_the_right():
    weights = np.eye(2)
    assert 'aria-label="heat map" dir="rtl"' in HoverMap(
        ["כלב", "לא"], ["a", "b"], weights, ""
    ).to_html(1)
    assert 'aria-label="heat map">' in HoverMap(["dog", "no"], ["כ", "ל"], weights, "").to_html(1)


def test_words_are_in_the_order_of_their_script():
    written = HoverMap(["dog", "猫"], ["כ", "ל"], np.eye(2), "").to_html(1)
    source, target = re.findall(r'<span class="side">\w+</span><div([^>]*)>', written)
    assert (source, target) == ("", ' dir="rtl"')
    assert '<span dir="auto">dog</span>' in written
    assert '<span dir="auto" class="upright">猫</span>' in written
