from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.base.errors import RegardError, SettingsError
from regard.pictures.graph import Neighbour, draw_embeddings, draw_neighbourhood, project_to_plane


def drawn(path: Path, neighbours: list[Neighbour], weight: float = 0.25) -> str:
    centre = Neighbour("me & <co>", 0, weight)
    draw_neighbourhood(centre, neighbours, classes=("cats", "dogs"), path=path)
    return path.read_text(encoding="utf-8")


def test_an_edge_is_as_thick_as_its_attention(tmp_path: Path) -> None:
    text = drawn(tmp_path / "n.svg", [Neighbour("a", 1, 0.5), Neighbour("b", 0, 0.25)])
    thick, thin = (text.split(f'id="edge-{name}"')[1][:400] for name in "ab")
    assert "stroke-width: 12" in thick
    assert "stroke-width: 6" in thin
    assert "me &amp; &lt;co&gt;" in text
    assert "dogs" in text


def test_a_node_without_neighbours_is_drawn_alone(tmp_path: Path) -> None:
    assert "attention to itself: 1;" in drawn(tmp_path / "n.svg", [], weight=1.0)


def test_of_many_neighbours_the_most_attended_are_drawn(tmp_path: Path) -> None:
    many = [Neighbour(f"n{number}", -1, 0.015) for number in range(70)]
    text = drawn(tmp_path / "n.svg", many)
    assert text.count('id="edge-') == 60
    assert "10 more neighbours share 0.15" in text
    assert "not known" in text


def test_a_picture_needs_a_known_format(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="cannot tell a format from the suffix"):
        drawn(tmp_path / "n.gif", [])


@pytest.mark.parametrize("method", ["pca", "t-sne"])
def test_embeddings_are_drawn(method: Any, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    path = tmp_path / "e.svg"
    labels = np.arange(20) % 3 - 1
    draw_embeddings(points, labels=labels, classes=("cats", "dogs"), path=path, method=method)
    assert method in path.read_text(encoding="utf-8")
    assert project_to_plane(points, method=method).shape == (20, 2)


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(SettingsError, match="pip install scikit-learn"):
        project_to_plane(np.zeros((3, 2)), method="pca")


def test_the_data_can_be_written_as_tables(tmp_path: Path) -> None:
    lines = drawn(tmp_path / "n.csv", [Neighbour("b", 1, 0.5), Neighbour("c", -1, 0.25)])
    assert lines.splitlines()[0] == "node,class,weight"
    assert lines.splitlines()[2:] == ["b,dogs,0.5", "c,,0.25"]
    pytest.importorskip("sklearn")
    points = np.random.default_rng(0).random((4, 3))
    path = tmp_path / "e.csv"
    draw_embeddings(points, labels=np.array([0, 1, -1, 0]), classes=("cats", "dogs"), path=path)
    rows = [line.split(",") for line in path.read_text().splitlines()]
    assert rows[0] == ["node", "class", "x", "y"]
    assert [row[1] for row in rows[1:]] == ["cats", "dogs", "", "cats"]
