"""All settings of a recipe with their descriptions: as a list, as a commented file, to search."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from regard.base.errors import SettingsError
from regard.settings.recipe import Recipe, suggestion, toml_value

WIDTH = 80
# Keys that say what a table is: written also where they have their default.
ALWAYS = ("task", "family")


@dataclass(frozen=True)
class Setting:
    """One key of a recipe: what it is, what it is by default, and what it is here."""

    key: str
    description: str
    choices: tuple[str, ...]
    """The values that it can have, if they are few."""
    default: Any
    value: Any
    given: bool
    """Whether the recipe sets it."""

    @property
    def name(self) -> str:
        """The key without its table."""
        return self.key.rpartition(".")[2]

    @property
    def text(self) -> str:
        """The description with the choices."""
        unnamed = [choice for choice in self.choices if choice not in self.description]
        return f"{self.description} ({', '.join(self.choices)})" if unnamed else self.description

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "description": self.description,
            **({"choices": list(self.choices)} if self.choices else {}),
            "default": self.default,
            "value": self.value,
            "given": self.given,
        }


@dataclass(frozen=True)
class SettingsTable:
    """A table of a recipe, as [training], and what it is about."""

    name: str
    description: str
    settings: tuple[Setting, ...]


def tables_of(recipe: Recipe) -> list[SettingsTable]:
    """Return all settings of a recipe, table by table, those that are not set included."""
    return list(_tables(recipe, recipe.model_dump(mode="json"), ""))


def settings_of(recipe: Recipe) -> list[Setting]:
    """Return all settings of a recipe, those that are not set included."""
    return [setting for table in tables_of(recipe) for setting in table.settings]


def _tables(model: BaseModel, values: Mapping[str, Any], path: str) -> Iterator[SettingsTable]:
    before = f"{path}." if path else ""
    settings, inner = [], []
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            inner.append((name, value))
            continue
        default = None if field.default is PydanticUndefined else field.default
        given = name in ALWAYS or (name in model.model_fields_set and value != default)
        settings.append(
            Setting(
                before + name,
                field.description or "what the recipe is for",
                _choices(field.annotation),
                list(default) if isinstance(default, tuple) else default,
                values[name],
                given or value != default,
            )
        )
    yield SettingsTable(path, (type(model).__doc__ or "").partition("\n")[0], tuple(settings))
    for name, table in inner:
        yield from _tables(table, values[name], before + name)


def _choices(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) in (Union, UnionType):
        return tuple(choice for part in get_args(annotation) for choice in _choices(part))
    several = get_origin(annotation) is Literal and len(get_args(annotation)) > 1
    return tuple(map(str, get_args(annotation))) if several else ()


def commented_text(recipe: Recipe) -> str:
    """Return a recipe as TOML with a description above each key; defaults are commented out."""
    lines: list[str] = []
    for table in tables_of(recipe):
        lines += ["", f"# {table.description}", f"[{table.name}]"] if table.name else []
        for setting in table.settings:
            lines += textwrap.wrap(
                setting.text, WIDTH, initial_indent="# ", subsequent_indent="#   "
            )
            mark = "" if setting.given else "#"
            value = " (not set)" if setting.value is None else f" {toml_value(setting.value)}"
            lines.append(f"{mark}{setting.name} ={value}")
    return "\n".join(lines).strip() + "\n"


@dataclass(frozen=True)
class Found:
    """A setting that a search found, and the recipes that have it, with their values."""

    setting: Setting
    recipes: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        table = {"key": self.setting.key, **self.setting.to_dict(), "recipes": self.recipes}
        return {name: value for name, value in table.items() if name not in ("value", "given")}


def search(word: str, recipes: Mapping[str, Recipe]) -> list[Found]:
    """Return the settings with a word in their key or description, those named by it first."""
    found: dict[tuple[str, str], Found] = {}
    known: set[str] = set()
    for name, recipe in recipes.items():
        for setting in settings_of(recipe):
            known.add(setting.name)
            if word.lower() in f"{setting.key} {setting.text}".lower():
                place = (setting.key, setting.description)
                found.setdefault(place, Found(setting, {})).recipes[name] = setting.value
    if not found:
        raise SettingsError(f"No setting has {word!r} in its name. {_near(word, sorted(known))}")
    return sorted(found.values(), key=lambda one: word.lower() not in one.setting.key)


def _near(word: str, known: Sequence[str]) -> str:
    near = suggestion(word, known)
    return near if near.startswith("Did") else "Show all of a recipe: regard recipes NAME."
