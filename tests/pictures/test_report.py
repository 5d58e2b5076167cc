from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.pictures.curves import length_curves_svg
from regard.pictures.heat_map import heat_map_svg
from regard.pictures.report import (
    Fold,
    Heading,
    HoverMap,
    Paragraph,
    Passage,
    Picture,
    Sample,
    Samples,
    Section,
    Table,
    report_html,
    write_page,
)
from regard.scoring.bleu import Band
from regard.scoring.measures import Score

ATTACK = "</title></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
EMPTY = {"meta", "img", "br", "link", "input"}


class Page(HTMLParser):
    """Collects what a browser would see, and refuses tags that do not match."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] == "script":
            self.scripts.append(data)


def everything(text: str) -> list[Section]:
    svg = heat_map_svg(np.eye(2), source=[text, "b"], target=["c", text], title=text)
    curves = length_curves_svg({text: [Band(1, 9, 5, Score("BLEU", 40.0, "tok:13a"))]}, title=text)
    return [
        Heading(text),
        Paragraph(text),
        Table(text, [text, "BLEU"], [[text, 1.5]]),
        Picture(text, svg),
        Picture(text, svg),
        Picture(text, curves),
        Samples([Sample(text, text, {text: text, "other": text + " x"})]),
        HoverMap([text, "b"], [text, "d"], np.eye(2), text),
        HoverMap([text, "b"], [text, "d"], np.eye(2), text),
        Passage(text, text),
        Fold(text, [Heading(text), Table(text, [text], [[text]])]),
    ]


def test_untrusted_texts_are_escaped():
    page = Page(report_html(title=ATTACK, sections=everything(ATTACK)))
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert all("alert" not in script for script in page.scripts)


@settings(deadline=None, max_examples=10)
@given(st.text(max_size=40))
def test_any_text_gives_a_well_formed_page(text):
    page = report_html(title=text, sections=everything(text))
    assert Page(page).tags.count("script") == 1
    page.encode("utf-8")


def test_ids_are_unique():
    page = Page(report_html(title="report", sections=everything("word")))
    ids = [value for name, value in page.attributes if name == "id"]
    assert ids
    assert len(ids) == len(set(ids))


def test_the_page_loads_nothing():
    text = report_html(title="report", sections=everything("word"))
    page = Page(text)
    assert not {"link", "iframe", "object", "embed", "base"} & set(page.tags)
    loading = [value for name, value in page.attributes if name in ("src", "href", "xlink:href")]
    assert all(value.startswith(("#", "data:image/png;base64,")) for value in loading)
    assert not re.search(r"@import|url\((?!#)", text)


def test_only_the_report_s_own_script_may_run():
    text = report_html(title="report", sections=[])
    (script,) = Page(text).scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text


def test_the_report_follows_the_reader_s_theme_and_screen():
    text = report_html(title="report", sections=[])
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text


def test_the_same_report_gives_the_same_bytes(tmp_path: Path):
    for name in ("one.html", "two.html"):
        write_page(tmp_path / "new" / name, title="Wörter", sections=everything("é"))
    one, two = (tmp_path / "new" / name for name in ("one.html", "two.html"))
    assert one.read_bytes() == two.read_bytes()
    assert "<h1>Wörter</h1>" in one.read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    with pytest.raises(RegardError, match=r"cannot be written \(Is a directory\)"):
        write_page(tmp_path, title="report", sections=[])


def test_a_long_report_begins_with_links_to_its_parts():
    sections = [Heading("One"), Paragraph("text"), Heading("<Two>"), Heading("Three")]
    page = report_html(title="report", sections=sections)
    assert '<a href="#part-1">One</a> <a href="#part-3">&lt;Two&gt;</a>' in page
    assert "<nav" not in report_html(title="report", sections=sections[:3])
