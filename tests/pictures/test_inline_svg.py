from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.pictures.heat_map import heat_map_svg
from regard.pictures.svg import inline_svg

OPEN = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'


def inlined(content: str) -> str:
    return inline_svg(f"{OPEN}{content}</svg>", prefix="a-", label="a picture")


def test_pictures_of_matplotlib_keep_their_parts_and_lose_what_reaches_beyond_them():
    svg = heat_map_svg(np.eye(2), source=["a", "b"], target=["c", "d"])
    page_part = inline_svg(svg, prefix="part-1-", label='a "map"')
    root = ElementTree.fromstring(page_part)
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    references = set(re.findall(r"url\(#([^)]+)\)", page_part))
    references |= set(re.findall(r'href="#([^"]+)"', page_part))
    assert ids
    assert all(name.startswith("part-1-") for name in ids)
    assert references <= ids
    assert root.get("aria-label") == 'a "map"'
    for unwanted in ("<?xml", "<!DOCTYPE", "<style", "<metadata", "purl.org"):
        assert unwanted not in page_part


def test_ids_of_two_pictures_differ():
    svg = heat_map_svg(np.eye(2), source=["a", "b"], target=["c", "d"])
    first, second = (
        set(re.findall(r'id="([^"]+)"', inline_svg(svg, prefix=f"part-{number}-", label="map")))
        for number in (1, 2)
    )
    assert first
    assert not first & second


def test_text_takes_the_colours_of_the_page():
    assert 'fill="currentColor"' in inlined('<path fill="#1f2328"/>')
    assert "stroke: var(--line)" in inlined('<path style="stroke: #e2e6ea"/>')


def test_references_follow_their_ids():
    written = inlined('<path id="x"/><use xlink:href="#x"/><g clip-path="url(#x)"/>')
    assert 'id="a-x"' in written
    assert 'href="#a-x"' in written
    assert "url(#a-x)" in written


def test_an_embedded_image_is_kept():
    assert "data:image/png;base64,AAAA" in inlined('<image href="data:image/png;base64,AAAA"/>')


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<script>alert(1)</script>", "may not hold <script>"),
        ("<foreignObject/>", "may not hold <foreignObject>"),
        ('<g onclick="alert(1)"/>', "may not hold the attribute 'onclick'"),
        ('<use href="https://example.org/x.svg#a"/>', "may not refer to 'https://example.org"),
        ('<use xlink:href="javascript:alert(1)"/>', "may not refer to 'javascript:alert"),
        ('<g style="fill: url(https://example.org)"/>', "may not refer to 'fill: url"),
        ("<g>", "is not valid SVG"),
    ],
)
def test_what_could_run_or_load_is_refused(content, problem):
    with pytest.raises(RegardError, match=re.escape(problem)):
        inlined(content)


def test_other_xml_is_refused():
    with pytest.raises(RegardError, match="not SVG but <html>"):
        inline_svg("<html/>", prefix="a-", label="")
