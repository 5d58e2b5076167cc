"""The shipped recipes, by name, and users' own, by file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from regard.settings.read import parse_recipe, read_recipe
from regard.settings.schema import Recipe
from regard.settings.suggest import require_known


def recipe_names() -> list[str]:
    """Return the names of the shipped recipes."""
    files = resources.files("regard.recipes").joinpath("shipped").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def find_recipe(name: str, *, overrides: Sequence[str] = ()) -> Recipe:
    """Return a shipped recipe by its name, or a user's by its path (which ends in .toml)."""
    if name.endswith(".toml"):
        return read_recipe(Path(name), overrides=overrides)
    require_known(name, recipe_names(), what="recipe (a shipped name, or a path ending in .toml):")
    text = resources.files("regard.recipes").joinpath("shipped", f"{name}.toml").read_text("utf-8")
    return parse_recipe(text, overrides=overrides, origin=f"recipe {name}")
