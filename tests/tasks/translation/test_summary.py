from __future__ import annotations

from pathlib import Path

import regard
from regard.models.inspection import layer_table, parameter_count
from regard.settings.models import RecurrentSettings
from regard.tasks.translation.model import build
from regard.tasks.translation.settings import TokenizerSettings, TranslationRecipe


def embeddings(recipe: TranslationRecipe) -> list[str]:
    return [row.shape for row in layer_table(build(recipe)) if row.kind == "Embedding"]


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
    assert sum(row.parameters for row in layer_table(model)) == total
    assert parameter_count(model) == total
