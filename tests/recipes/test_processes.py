from __future__ import annotations

import pytest
import torch

from regard.base.errors import SettingsError
from regard.models.build import build_translator
from regard.recipes.catalog import find_recipe
from regard.recipes.processes import processes_for
from regard.settings.schema import expect
from regard.settings.translation import TranslationRecipe

SMALL = ["model.layers=1", "model.model_dim=8", "model.feed_forward=8"]


def processes(*changes: str, cores: int = 4, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many processes train a small model on a machine with so many cores."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: cores)
    found = find_recipe("transformer-tiny", overrides=[*SMALL, *changes])
    recipe = expect(found, TranslationRecipe)
    model = build_translator(recipe.model, source_vocab=50, target_vocab=50)
    return processes_for(recipe, model)


@pytest.mark.parametrize(
    ("changes", "cores", "wanted"),
    [
        ([], 2, 2),
        ([], 1, 1),
        (["batches.tokens=4096"], 16, 4),  # more would have next to nothing to do
        (["batches.tokens=300"], 2, 1),
        (["training.compile=true"], 2, 1),
        (["training.processes=3"], 2, 3),
        (["training.processes=1"], 2, 1),
    ],
)
def test_as_many_as_are_asked_for_or_worth_their_while(
    changes: list[str], cores: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert processes(*changes, cores=cores, monkeypatch=monkeypatch) == wanted


def test_a_large_model_is_left_to_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.recipes.processes.LARGEST", 1_000)
    assert processes(monkeypatch=monkeypatch) == 1


def test_helpers_that_cannot_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.recipes.processes.CAN_HAVE_HELPERS", False)
    assert processes(monkeypatch=monkeypatch) == 1
    with pytest.raises(SettingsError, match=r"training.processes = 2 needs Linux"):
        processes("training.processes=2", monkeypatch=monkeypatch)
