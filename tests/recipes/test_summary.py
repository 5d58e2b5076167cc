from __future__ import annotations

from pathlib import Path

import regard
from regard.models.inspection import parameter_count
from regard.recipes.summary import summarise_recipe, summarise_run
from regard.settings.model import RecurrentSettings
from regard.settings.translation import TokenizerSettings, TranslationRecipe


def embeddings(recipe: TranslationRecipe) -> list[str]:
    return [row.shape for row in summarise_recipe(recipe) if row.kind == "Embedding"]


def test_the_vocabulary_is_set_or_the_tokenizers_or_assumed() -> None:
    small = {"hidden": 8, "embedding": 4}
    assert embeddings(TranslationRecipe(model=RecurrentSettings(**small))) == ["8000x4"] * 2
    assert (
        embeddings(
            TranslationRecipe(
                model=RecurrentSettings(**small), tokenizer=TokenizerSettings(size=100)
            )
        )
        == ["100x4"] * 2
    )
    assert embeddings(
        TranslationRecipe(model=RecurrentSettings(**small, source_vocab=50, target_vocab=60))
    ) == ["50x4", "60x4"]


def test_a_runs_layers_are_those_of_its_model(toy_run: Path) -> None:
    model = regard.load(toy_run).model
    total = sum(parameter.numel() for parameter in model.parameters())
    assert sum(row.parameters for row in summarise_run(toy_run)) == total
    assert parameter_count(model) == total
