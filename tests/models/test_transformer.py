from __future__ import annotations

from dataclasses import fields

import pytest

from regard.models.build import TRANSLATORS, TransformerPlan, build_translator
from regard.models.inspection import layer_table
from regard.settings.models import TransformerSettings
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.settings import TranslationRecipe


def test_settings_and_plan_have_the_same_names_and_defaults() -> None:
    chosen = TransformerSettings().model_dump(exclude={"family", "source_vocab", "target_vocab"})
    chosen["decoder_layers"] = chosen["decoder_layers"] or chosen["layers"]
    plan = {field.name: field.default for field in fields(TransformerPlan)}
    assert plan.pop("segments") == 0  # of language models only
    assert chosen == plan
    assert TransformerSettings().family in TRANSLATORS


# Biases and norms aside, a layer has 4 d^2 weights an attention and 2 d f in its network.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("transformer-tiny", 4 * (132_480 + 198_784) + 8_000 * 128 + 2 * 2 * 128),
        ("transformer-base", 6 * (3_152_384 + 4_204_032) + 8_000 * 512),
    ],
)
def test_the_shipped_models_have_the_published_sizes(name: str, expected: int) -> None:
    recipe = expect(find_recipe(name), TranslationRecipe)
    model = build_translator(recipe.model, source_vocab=8_000, target_vocab=8_000)
    assert sum(row.parameters for row in layer_table(model)) == expected


def test_a_shallow_decoder_can_follow_a_deep_encoder() -> None:
    settings = TransformerSettings(
        layers=3, decoder_layers=1, model_dim=8, heads=2, feed_forward=8, decoder="ssru"
    )
    names = {
        row.name for row in layer_table(build_translator(settings, source_vocab=9, target_vocab=9))
    }
    assert "encoder.layers.2.attention.projection" in names
    assert "decoder.layers.0.self_attention.forget" in names
    assert not any(name.startswith("decoder.layers.1") for name in names)
