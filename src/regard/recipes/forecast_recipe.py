"""The recipe for a user's own series, from the shipped one and a few choices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from regard.recipes.catalog import find_recipe
from regard.settings.forecast import ForecastRecipe
from regard.settings.schema import expect


def recipe_for(
    file: Path,
    *,
    column: str | None,
    window: int,
    horizon: int,
    attention: str,
    overrides: Sequence[str] = (),
) -> ForecastRecipe:
    """Return the recipe `forecast` for this file; overrides are applied last."""
    chosen = {
        "data.file": _quoted(str(file)),
        "data.column": None if column is None else _quoted(column),
        "data.window": window,
        "data.horizon": horizon,
        "model.attention": _quoted(attention),
    }
    given = [f"{key}={value}" for key, value in chosen.items() if value is not None]
    return expect(find_recipe("forecast", overrides=[*given, *overrides]), ForecastRecipe)


def _quoted(text: str) -> str:
    """Return a text as TOML writes it, so that no name is taken for a number or a list."""
    return json.dumps(text, ensure_ascii=False)
