"""Recipes: the base of all schemas, read from TOML and overrides, written back as TOML."""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Tag, ValidationError

from regard.base.budgets import TOML_BYTES, TOML_DEPTH, open_input, parse_toml, shown
from regard.base.errors import SettingsError


class Settings(BaseModel):
    """A frozen table of a recipe; an unknown key is an error, never silently ignored."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )


def _several(value: Any) -> Any:
    """Return one text or number as a list of one, and numbers as text."""
    values = value if isinstance(value, list | tuple) else [value]
    return [str(one) if isinstance(one, int | Path) else one for one in values]


# Names of files or columns; a single name is a list of one.
Names = Annotated[tuple[str, ...], BeforeValidator(_several)]


@dataclass(frozen=True)
class PathMark:
    """Marks the settings that name files or folders."""


File = Annotated[str | None, PathMark()]
Files = Annotated[Names, PathMark()]


class StartSettings(Settings):
    """What a training starts from, and which weights it may change."""

    start_from: File = Field(
        None,
        description="folder of a run whose weights and tokenizers to start from (--from); new "
        "characters and words are added, and subwords up to tokenizer.size",
    )
    freeze: Names = Field(
        (),
        description='parts not to train, by name, as ["encoder", "embedding", "norms"], or by a '
        'pattern of parameters, as ["encoder.layers.0.*"]',
    )
    adapter_rank: int = Field(
        0, ge=0, description="rank of adapters (LoRA) that are trained alone; 0: all weights"
    )


class WatchedSettings(StartSettings):
    """What of a training is kept besides its metrics."""

    film: bool = Field(False, description="keep what the model looks at after a few updates")
    tensorboard: bool = Field(False, description="also log to TensorBoard")


class Recipe(Settings):
    """A recipe of any task; each task has a subclass with tables of its own."""

    kept_on_resume: ClassVar[Mapping[str, str]] = {
        "training.seed": "decides the first weights and the order of the batches"
    }
    """The settings that a resumed training keeps, besides data and model, and what each does."""

    task: str
    title: str = Field("", description="title of the report; none: the recipe's name")


# Settings that had another name before: what a recipe says, and what it should say.
RENAMED = {
    "training.second_beta": "training.beta2",
    "pretrained": "training.start_from",
}

AnyRecipe = TypeVar("AnyRecipe", bound=Recipe)
AnySettings = TypeVar("AnySettings", bound=Settings)


def with_paths(settings: AnySettings, rename: Callable[[str], str]) -> AnySettings:
    """Return the settings with other names of their files and folders."""
    changed: dict[str, Any] = {}
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, Settings):
            changed[name] = with_paths(value, rename)
        elif value and any(isinstance(mark, PathMark) for mark in field.metadata):
            changed[name] = rename(value) if isinstance(value, str) else tuple(map(rename, value))
    return settings.model_copy(update=changed)


def expect(recipe: Recipe, kind: type[AnyRecipe]) -> AnyRecipe:
    """Return the recipe as one of this kind, or say that it is for another task."""
    if not isinstance(recipe, kind):
        require_task(recipe.task, kind)
    return cast(AnyRecipe, recipe)


def require_task(task: str, kind: type[Recipe]) -> None:
    """Refuse a task that recipes of this kind are not for."""
    wanted = kind.model_fields["task"].default
    if task != wanted:
        raise SettingsError(f"This needs a recipe of the task {wanted!r}, not {task!r}.")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a sentence that names the nearest known name, or all of them if none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(names)}."


def require_known(name: str, known: Iterable[str], *, what: str) -> None:
    """Refuse a name that is not among the known ones."""
    names = list(known)
    if name not in names:
        raise SettingsError(f"Unknown {what} {name!r}. {suggestion(name, names)}")


def parse_table(text: str, *, overrides: Sequence[str] = (), origin: str) -> dict[str, Any]:
    """Return the table that a TOML text and `key=value` overrides describe."""
    try:
        table = parse_toml(text)
    except ValueError as error:
        raise SettingsError(f"{origin} is not valid TOML: {error}.") from error
    for override in overrides:
        _apply(table, override)
    return table


def read_table(path: Path, *, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the table of a TOML file, with `key=value` overrides applied to it."""
    try:
        with open_input(path) as file:
            text = file.read(TOML_BYTES + 1).decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(f"Cannot read the recipe {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"The recipe {path} is not UTF-8 text.") from error
    return parse_table(text, overrides=overrides, origin=str(path))


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
    if len(path) > TOML_DEPTH:
        raise SettingsError(f"--set {shown(override)}: the key has {len(path):,} parts.")
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
        return parse_toml(f"value = {raw}")["value"]
    except ValueError:
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
        if key in RENAMED:
            return f"the key {key!r} is now called {RENAMED[key]!r}."
        return f"unknown key {key!r}. {suggestion(path[-1], table.model_fields)}"
    if problem["type"] == "union_tag_invalid":
        family = problem["ctx"]["tag"]
        known = _families(schema.model_fields[path[-1]].annotation)
        return f"{key}.family: unknown family {family!r}. {suggestion(family, known)}"
    message = problem["msg"].removeprefix("Value error, ")
    given = problem.get("input")
    said = "" if isinstance(given, dict | BaseModel) or not key else f" (given: {shown(given)})"
    return f"{key or 'recipe'}: {message}{said}."


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


# Keys of data that name a user's own; asking for the built-in data takes them out of a recipe.
OWN_DATA = (
    "train", "valid", "test", "file", "column", "text", "pairs",
    "graph", "edges", "features", "labels",
)  # fmt: skip


def option_table(recipe: Recipe, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe's table with `pair`, `columns`, `built_in` or `minutes` set.

    They are refused where the task has no such setting. Asking for the built-in data takes other
    data out of the recipe.
    """
    table = recipe.model_dump(mode="json")
    data, training = table.setdefault("data", {}), table.setdefault("training", {})
    for name, value in options.items():
        if value is None:
            continue
        place, key = (training if name == "minutes" else data), name
        if name == "columns" and "columns" not in data and "column" in data:
            key, value = "column", _only_column(value)
        if key not in place:
            option = f"--{name.replace('_', '-')}"
            raise SettingsError(f"A recipe of the task {recipe.task!r} takes no {option}.")
        place[key] = value
    if options.get("built_in"):
        for name in OWN_DATA:
            data.pop(name, None)
        data["from_memory"] = False
    return table


def _only_column(value: Any) -> str:
    names = [value] if isinstance(value, str | int) else list(value)
    if len(names) != 1:
        raise SettingsError(
            f"One column is wanted, not {len(names)}: {', '.join(map(str, names))}."
        )
    return str(names[0])


def recipe_text(recipe: Recipe) -> str:
    """Return the complete recipe as TOML, defaults included."""
    return "\n".join(_lines(recipe.model_dump(mode="json"), ())).strip() + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    """Return the lines of one table: its values first, then the tables inside it."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = ["", f"[{'.'.join(path)}]"] if path else []
    # TOML has no null: a setting that is None is left out and read back as its default.
    lines += [f"{key} = {toml_value(value)}" for key, value in plain.items() if value is not None]
    for key, value in inner.items():
        lines += _lines(value, (*path, key))
    return lines


def toml_value(value: Any) -> str:
    """Return one value; JSON's strings, numbers, booleans and lists are valid TOML, but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
