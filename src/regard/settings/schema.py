"""The base of all settings: frozen, and closed to names it does not know."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from regard.base.errors import SettingsError


class Settings(BaseModel):
    """A frozen table of a recipe; an unknown key is an error, never silently ignored."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )


class Recipe(Settings):
    """A recipe of any task; each task has a subclass with tables of its own."""

    task: str
    title: str = ""


AnyRecipe = TypeVar("AnyRecipe", bound=Recipe)
AnySettings = TypeVar("AnySettings", bound=Settings)


def expect(recipe: Recipe, kind: type[AnyRecipe]) -> AnyRecipe:
    """Return the recipe as one of this kind, or say that it is for another task."""
    if not isinstance(recipe, kind):
        wanted = kind.model_fields["task"].default
        raise SettingsError(f"This needs a recipe of the task {wanted!r}, not {recipe.task!r}.")
    return recipe
