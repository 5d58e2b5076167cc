"""The layers of a recipe's or a run's model."""

from __future__ import annotations

from pathlib import Path

from regard.models.build import build_translator
from regard.models.inspection import LayerRow, layer_table
from regard.recipes.run import Run
from regard.settings.translation import TranslationRecipe

# A recipe does not know its vocabulary before it has seen data; this stands in for it.
ASSUMED_VOCABULARY = 8_000


def summarise_recipe(recipe: TranslationRecipe) -> list[LayerRow]:
    """Return the layers that a recipe builds; model.source_vocab and target_vocab may be set."""
    vocabulary = recipe.tokenizer.size or ASSUMED_VOCABULARY
    model = build_translator(
        recipe.model,
        source_vocab=recipe.model.source_vocab or vocabulary,
        target_vocab=recipe.model.target_vocab or vocabulary,
    )
    return layer_table(model)


def summarise_run(folder: Path) -> list[LayerRow]:
    """Return the layers of a trained run."""
    run = Run.open(folder)
    source, target = run.tokenizers()
    model = build_translator(
        run.recipe(TranslationRecipe).model, source_vocab=source.size, target_vocab=target.size
    )
    return layer_table(model)
