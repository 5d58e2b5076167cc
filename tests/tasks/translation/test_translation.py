from __future__ import annotations

import numpy as np

from regard.tasks.attention import AttentionMap
from regard.tasks.translation.results import Translation

MAP = AttentionMap(
    np.array([[0.9, 0.1], [0.2, 0.8]], dtype=np.float32), ("<b>", "</s>"), ("c", "</s>"), (0, -1),
    (0, -1),
)  # fmt: skip


def test_a_translation_shows_itself_in_a_notebook() -> None:
    other = Translation("<b>", "d", -0.75, -1.5, None)
    shown = Translation("<b>", "c", -0.5, -1.0, MAP, (other,))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    for part in ("-0.500", "-0.750", "<svg"):
        assert part in shown


def test_without_attention_or_words_there_is_no_picture() -> None:
    assert "<svg" not in Translation("a", "b", 0.0, 0.0, None)._repr_html_()
    assert "<svg" not in Translation(" ", "", 0.0, 0.0, MAP)._repr_html_()
