"""The recipes that ship with the program."""

from importlib import resources

from regard.settings.recipe import require_known


def recipe_names() -> list[str]:
    """Return the names of the shipped recipes."""
    files = resources.files("regard.runs").joinpath("recipes").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def shipped_recipe(name: str) -> str:
    """Return the TOML text of a shipped recipe."""
    require_known(name, recipe_names(), what="recipe (a shipped name, or a path ending in .toml):")
    return resources.files("regard.runs").joinpath("recipes", f"{name}.toml").read_text("utf-8")
