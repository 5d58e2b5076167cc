from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.base.errors import SettingsError
from regard.tasks.attention import AttentionHeads, draw_heads, draw_sentence, draw_word, gazes
from regard.tasks.language_modelling.model import HeadView
from regard.tasks.language_modelling.views import text_heads

VIEW = HeadView(("the", "␣cat", "␣sat"), torch.tril(torch.full((2, 2, 3, 3), 0.3)))
HEADS = text_heads(VIEW)
ACROSS = AttentionHeads("cross", np.full((1, 1, 1, 2), 0.5), ("a", "b"), ("c",))


@pytest.mark.parametrize(
    ("name", "layer", "head", "shown"),
    [
        ("all.svg", None, None, ["layer 0, head 0", "layer 1, head 1", "the cat sat"]),
        ("layer.svg", 1, None, ["layer 1, head 0", "layer 1, head 1"]),
        ("one.svg", 1, 0, ["layer 1, head 0", "␣cat"]),
        ("one.csv", 1, 0, [",the,␣cat,␣sat"]),
        ("all.json", None, None, ['"layer": 1']),
        ("page.html", None, None, ["All layers and heads", 'class="hover-map"']),
    ],
)
def test_every_kind_of_picture(
    tmp_path: Path, name: str, layer: int | None, head: int | None, shown: list[str]
) -> None:
    draw_heads(HEADS, tmp_path / name, layer=layer, head=head)
    content = (tmp_path / name).read_text(encoding="utf-8")
    for text in shown:
        assert text in content
    if name == "layer.svg":
        assert "layer 0" not in content
    if name == "page.html":
        assert content.count('class="hover-map"') == 4


@pytest.mark.parametrize(
    ("layer", "head", "notes"),
    [
        (None, None, ["layer 0, mean of 2 heads", "layer 1, mean of 2 heads"]),
        (1, None, ["layer 1, head 0", "layer 1, head 1"]),
        (1, 0, ["layer 1, head 0"]),
    ],
)
def test_a_word_looks_in_each_layer_each_head_or_one(
    layer: int | None, head: int | None, notes: list[str]
) -> None:
    found = gazes(HEADS, "cat", layer=layer, head=head)
    assert [gaze.note for gaze in found] == notes
    assert all(gaze.place == 1 for gaze in found)
    np.testing.assert_allclose(found[0].weights, [0.3, 0.3, 0.0])


def test_arcs_are_written(tmp_path: Path) -> None:
    draw_word(HEADS, "sat", tmp_path / "word.svg", layer=0, head=1)
    assert "layer 0, head 1" in (tmp_path / "word.svg").read_text(encoding="utf-8")
    draw_sentence(HEADS, tmp_path / "sentence.svg")
    assert "all layers, mean of the heads" in (tmp_path / "sentence.svg").read_text()
    draw_sentence(HEADS, tmp_path / "sentence.svg", layer=1, head=0)
    assert "layer 1, head 0" in (tmp_path / "sentence.svg").read_text()


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no layer 2: the layers are 0 to 1"):
        draw_heads(HEADS, tmp_path / "a.png", layer=2)
    with pytest.raises(SettingsError, match="Say of which layer: 0 to 1"):
        draw_heads(HEADS, tmp_path / "a.png", head=1)
    with pytest.raises(SettingsError, match="Say of which layer: 0 to 1"):
        gazes(HEADS, "cat", head=1)
    with pytest.raises(SettingsError, match="Only self-attention"):
        draw_sentence(ACROSS, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
