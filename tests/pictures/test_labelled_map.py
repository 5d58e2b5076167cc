from __future__ import annotations

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.pictures.labels import labelled_map, plain_text, readable_label


@pytest.mark.parametrize(
    ("largest", "limit"),
    [(1.0, 1.0), (0.93, 1.0), (0.55, 0.6), (0.3, 0.3), (0.004, 0.1), (0.0, 0.1), (2.51, 2.6)],
)
def test_the_strongest_colour_is_the_next_tenth(largest, limit):
    drawn = labelled_map(np.array([[0.0, largest]]), source=["a", "b"], target=["c"])
    assert drawn.limit == pytest.approx(limit)


def test_words_must_fit():
    with pytest.raises(RegardError, match=r"shape \(2, 3\) do not fit 3 target words and 2 source"):
        labelled_map(np.ones((2, 3)), source=["a", "b"], target=["a", "b", "c"])


def test_there_must_be_something_to_draw():
    with pytest.raises(RegardError, match="nothing to draw: 0 target words and 2 source words"):
        labelled_map(np.ones((0, 2)), source=["a", "b"], target=[])


def test_weights_must_be_finite():
    with pytest.raises(RegardError, match="not finite"):
        labelled_map(np.array([[np.nan]]), source=["a"], target=["b"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("mögen", "mögen", id="as it is"),
        pytest.param("", "␣", id="empty"),
        pytest.param("\n", "␣", id="only a line end"),
        pytest.param("a\tb", "a b", id="tab"),
        pytest.param("\0\x1b[31m", "��[31m", id="control"),
        pytest.param("\ud800", "�", id="lone surrogate"),
        pytest.param("\ufffe\ufdd0", "��", id="noncharacters"),
        pytest.param("x" * 30, "x" * 23 + "…", id="too long"),
    ],
)
def test_labels_can_be_read(text, expected):
    assert readable_label(text) == expected


def test_plain_text_keeps_every_script():
    text = "Straße Ωμέγα кошка 日本語 שלום 🙂"
    assert plain_text(text) == text
