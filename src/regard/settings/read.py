"""Recipes from TOML files and overrides; errors name the key and the nearest valid one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError

from regard.base.errors import SettingsError
from regard.settings.schema import AnySettings, Recipe
from regard.settings.suggest import require_known, suggestion
from regard.settings.tasks import TASKS


def parse_recipe(text: str, *, overrides: Sequence[str] = (), origin: str) -> Recipe:
    """Return the recipe that a TOML text and `key=value` overrides describe."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{origin} is not valid TOML: {error}.") from error
    for override in overrides:
        _apply(table, override)
    return validate_recipe(table, origin=origin)


def read_recipe(path: Path, *, overrides: Sequence[str] = ()) -> Recipe:
    """Return the recipe of a TOML file, with `key=value` overrides applied to it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"Cannot read the recipe {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"The recipe {path} is not UTF-8 text.") from error
    return parse_recipe(text, overrides=overrides, origin=str(path))


def validate_recipe(table: Mapping[str, Any], *, origin: str) -> Recipe:
    """Return the recipe of a table, or say which key is wrong and what it could be."""
    task = table.get("task", "translate")
    require_known(str(task), TASKS, what=f"task in {origin}:")
    return validate(table, TASKS[task], origin=origin)


def validate(table: Mapping[str, Any], schema: type[AnySettings], *, origin: str) -> AnySettings:
    """Return a table as settings of this kind, or say which key is wrong."""
    try:
        return schema.model_validate(dict(table))
    except ValidationError as error:
        raise SettingsError(f"{origin}: {_explain(error, schema)}") from error


def _apply(table: dict[str, Any], override: str) -> None:
    """Set one dotted key of the table, as `training.steps=200` or `data.train=[a.en,a.de]`."""
    key, equals, raw = override.partition("=")
    path = key.strip().split(".")
    if not equals or not all(path):
        raise SettingsError(f"--set {override!r} is not of the form key=value.")
    for part in path[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise SettingsError(
                f"--set {override!r}: {part!r} is a value, not a table of settings."
            )
    table[path[-1]] = parse_value(raw.strip())


def parse_value(raw: str) -> Any:
    """Return a value as TOML reads it; what TOML cannot read is text, also inside a list."""
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        if raw.startswith("[") and raw.endswith("]"):
            items = [item.strip() for item in raw[1:-1].split(",")]
            return [parse_value(item) for item in items if item]
        return raw


def _explain(error: ValidationError, schema: type[BaseModel]) -> str:
    """Return the first problem in one sentence, with the key that it is about."""
    problem = error.errors()[0]
    path, table = _written(schema, [str(part) for part in problem["loc"]])
    key = ".".join(path)
    if problem["type"] == "extra_forbidden":
        return f"unknown key {key!r}. {suggestion(path[-1], table.model_fields)}"
    if problem["type"] == "union_tag_invalid":
        family = problem["ctx"]["tag"]
        known = _families(schema.model_fields[path[-1]].annotation)
        return f"{key}.family: unknown family {family!r}. {suggestion(family, known)}"
    message = problem["msg"].removeprefix("Value error, ")
    given = problem.get("input")
    shown = "" if isinstance(given, dict | BaseModel) or not key else f" (given: {given!r})"
    return f"{key or 'recipe'}: {message}{shown}."


def _written(schema: type[BaseModel], location: Sequence[str]) -> tuple[list[str], type[BaseModel]]:
    """Return a problem's keys as the user wrote them, and the table that holds the last of them.

    Where a table may be of several families, pydantic adds the family to the keys.
    """
    path: list[str] = []
    families: dict[str, type[BaseModel]] = {}
    for part in location:
        if part in families:
            schema, families = families[part], {}
            continue
        path.append(part)
        field = schema.model_fields.get(part)
        if field is None:
            continue
        families = _families(field.annotation)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            schema = field.annotation
    return path, schema


def _families(annotation: Any) -> dict[str, type[BaseModel]]:
    """Return the schemas of a table that may be of several families, by their names."""
    members = [get_args(m) for m in get_args(annotation) if get_origin(m) is Annotated]
    return {
        mark.tag: schema for schema, *marks in members for mark in marks if isinstance(mark, Tag)
    }
