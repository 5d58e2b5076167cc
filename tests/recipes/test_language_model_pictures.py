from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.base.errors import SettingsError
from regard.recipes.language_model_pictures import draw_view
from regard.recipes.loaded_language_model import HeadView

VIEW = HeadView(("the", "␣cat", "␣sat"), torch.tril(torch.full((2, 2, 3, 3), 0.3)))


@pytest.mark.parametrize(
    ("name", "head"), [("all.svg", None), ("one.svg", 1), ("all.png", None), ("page.html", None)]
)
def test_every_kind_of_picture(tmp_path: Path, name: str, head: int | None) -> None:
    draw_view(VIEW, tmp_path / name, layer=1, head=head)
    content = (tmp_path / name).read_bytes()
    if name.endswith(".svg"):
        assert (b"layer 1, head 1" in content) and (b"the cat sat" in content)
    if name.endswith(".html"):
        assert content.count(b'class="hover-map"') == 4
        assert b"http://" not in content.replace(b"http://www.w3.org", b"")


def test_a_head_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no layer 2 or head None: the model has 2 layers"):
        draw_view(VIEW, tmp_path / "a.png", layer=2)
    with pytest.raises(SettingsError, match="no layer 0 or head 5"):
        draw_view(VIEW, tmp_path / "a.png", head=5)
