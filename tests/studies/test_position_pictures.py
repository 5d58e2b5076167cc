from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.attention.positions import LearnedPositions, RelativePositions
from regard.base.errors import SettingsError
from regard.studies.positions import (
    PositionCurves,
    PositionVectors,
    Subject,
    picture,
    positions_of,
)


def test_sinusoids_are_those_of_the_paper() -> None:
    found = positions_of("sinusoidal")
    assert isinstance(found, PositionVectors)
    assert found.vectors.shape == (64, 128)
    place = np.arange(64)
    np.testing.assert_allclose(found.vectors[:, 0], np.sin(place), atol=1e-6)
    np.testing.assert_allclose(found.vectors[:, 3], np.cos(place / 10_000 ** (2 / 128)), atol=1e-5)


def test_rotary_agreement_begins_at_one_and_alibi_at_zero() -> None:
    rotary, alibi = positions_of("rotary"), positions_of("alibi")
    assert isinstance(rotary, PositionCurves) and isinstance(alibi, PositionCurves)
    assert all(values[0] == 1.0 for values in rotary.curves.values())
    np.testing.assert_allclose(rotary.curves["wave 0"], np.cos(np.arange(64)), atol=1e-6)
    assert len(alibi.curves) == 8
    assert alibi.curves["head 0"][:3] == [0.0, -0.5, -1.0]


def test_learned_and_relative_vectors_are_the_model_s() -> None:
    learned = LearnedPositions(6, max_length=9)
    found = picture("learned", Subject(model=torch.nn.Sequential(learned)))
    assert isinstance(found, PositionVectors)
    np.testing.assert_array_equal(found.vectors, learned.vectors.detach().numpy())
    tables = torch.nn.Sequential(RelativePositions(4, reach=3), RelativePositions(4, reach=3))
    found = picture("relative", Subject(model=tables, layer=1))
    assert isinstance(found, PositionVectors)
    assert list(found.places) == [-3, -2, -1, 0, 1, 2, 3]
    np.testing.assert_array_equal(found.vectors, tables[1].keys.detach().numpy())
    with pytest.raises(SettingsError, match="no layer 2: the layers are 0 to 1"):
        picture("relative", Subject(model=tables, layer=2))


def test_the_own_positions_of_a_run(random_transformer_run: Path) -> None:
    found = positions_of("own", random_transformer_run)
    assert isinstance(found, PositionVectors)
    assert found.vectors.shape == (64, 32)
    other = positions_of("alibi", random_transformer_run)
    assert isinstance(other, PositionCurves)
    assert len(other.curves) == 2


@pytest.mark.parametrize("suffix", [".svg", ".csv", ".json"])
@pytest.mark.parametrize("kind", ["sinusoidal", "alibi"])
def test_they_come_as_pictures_and_as_data(tmp_path: Path, kind: str, suffix: str) -> None:
    found = positions_of(kind)
    found.save(tmp_path / f"p{suffix}")
    assert (tmp_path / f"p{suffix}").stat().st_size > 500
    assert found.to_dict()["title"] == found.title
    if suffix == ".svg":
        assert found.title in found._repr_html_()


def test_mistakes(random_transformer_run: Path, toy_run: Path, tmp_path: Path) -> None:
    for kind in ("learned", "relative", "own"):
        with pytest.raises(SettingsError, match="belong to a trained run: name its folder"):
            positions_of(kind)
    with pytest.raises(SettingsError, match=r"'sinusoid'\. Did you mean 'sinusoidal'"):
        positions_of("sinusoid")
    with pytest.raises(SettingsError, match="no learned positions; its kind is 'sinusoidal'"):
        positions_of("learned", random_transformer_run)
    with pytest.raises(SettingsError, match="has no positional encoding"):
        positions_of("own", toy_run)
    (tmp_path / "recipe.toml").write_text('task = "forecast"', encoding="utf-8")
    with pytest.raises(SettingsError, match="'forecast' has no positions to look at"):
        positions_of("own", tmp_path)
