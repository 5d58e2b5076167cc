"""Recipes as TOML text, so that a run can tell how it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from regard.settings.schema import Recipe


def recipe_text(recipe: Recipe) -> str:
    """Return the complete recipe as TOML, defaults included."""
    return "\n".join(_lines(recipe.model_dump(mode="json"), ())).strip() + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    """Return the lines of one table: its values first, then the tables inside it."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = ["", f"[{'.'.join(path)}]"] if path else []
    # TOML has no null: a setting that is None is left out and read back as its default.
    lines += [f"{key} = {_value(value)}" for key, value in plain.items() if value is not None]
    for key, value in inner.items():
        lines += _lines(value, (*path, key))
    return lines


def _value(value: Any) -> str:
    """Return one value; JSON's strings, numbers, booleans and lists are valid TOML, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
