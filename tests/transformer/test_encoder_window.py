"""Encoders whose lower layers see their neighbours only."""

from __future__ import annotations

import pytest
import torch

from regard.base.errors import SettingsError
from regard.models.build import build_translator
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.settings import TranslationRecipe

SMALL = ["model.model_dim=16", "model.feed_forward=16", "model.heads=2"]


def test_all_but_the_last_layer_see_their_neighbours_only() -> None:
    overrides = [*SMALL, "model.layers=3", "model.encoder_window=2"]
    recipe = expect(find_recipe("antecedent", overrides=overrides), TranslationRecipe)
    torch.manual_seed(1)
    model = build_translator(recipe.model, source_vocab=20, target_vocab=20).eval()
    source = torch.randint(5, 20, (2, 9))
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[1, 7:] = False
    _, weights = model.encoder.look(source, mask)
    places = torch.arange(9)
    far = (places[:, None] - places).abs() > 2
    assert weights.shape == (3, 2, 2, 9, 9)
    assert (weights[:2, ..., far] == 0).all()
    assert (weights[2, 0][:, far] > 0).all()
    assert (weights[2, 1, :, :, 7:] == 0).all()
    everywhere = expect(find_recipe("antecedent", overrides=SMALL), TranslationRecipe)
    assert everywhere.model.encoder_window == 3


def test_a_window_and_linear_attention_exclude_each_other() -> None:
    with pytest.raises(SettingsError, match="and a window exclude each other"):
        find_recipe("antecedent", overrides=["model.kernel=linear"])
