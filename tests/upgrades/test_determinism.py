"""The same seed, data and machine give the same weights, for every kind of model that is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.upgrades.kept_runs import KEPT

import regard

STEPS = {"training.steps": 6, "training.validate_every": 3, "training.checkpoint_every": 3}


def weights(folder: Path) -> dict[str, bytes]:
    files = folder.rglob("*.safetensors")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_the_same_seed_gives_the_same_weights(name: str, tmp_path: Path) -> None:
    kept = KEPT[name]
    settings = kept.settings | {key: STEPS[key] for key in STEPS if key in kept.settings}
    for out in ("first", "second"):
        options: dict[str, Any] = {"data": kept.data, "set": settings, "progress": False}
        regard.train(kept.recipe, out=tmp_path / out, **options)
    first, second = weights(tmp_path / "first"), weights(tmp_path / "second")
    assert first and first == second
