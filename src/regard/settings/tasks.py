"""The tasks that a recipe can be for, each with its schema: the one registry."""

from __future__ import annotations

from regard.settings.forecast import ForecastRecipe
from regard.settings.graph import GraphRecipe
from regard.settings.language_model import LanguageModelRecipe
from regard.settings.schema import Recipe
from regard.settings.text_classification import TextClassificationRecipe
from regard.settings.translation import TranslationRecipe

TASKS: dict[str, type[Recipe]] = {
    "translate": TranslationRecipe,
    "forecast": ForecastRecipe,
    "classify-nodes": GraphRecipe,
    "language-model": LanguageModelRecipe,
    "classify-text": TextClassificationRecipe,
}
