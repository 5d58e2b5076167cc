from __future__ import annotations

from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen


@pytest.fixture(scope="session")
def font_with_cat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A font file that knows a single character, 猫, and draws it as a square."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 800), (800, 800), (800, 0)):
        pen.lineTo(corner)
    pen.closePath()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "cat"])
    builder.setupCharacterMap({ord("猫"): "cat"})
    square = pen.glyph()
    builder.setupGlyf({".notdef": square, "cat": square})
    builder.setupHorizontalMetrics({".notdef": (900, 0), "cat": (900, 0)})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "Cat Sans", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    path = tmp_path_factory.mktemp("fonts") / "cat.ttf"
    builder.save(str(path))
    return path
