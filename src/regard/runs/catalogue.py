"""What recipes can name: those that ship with the program, and parts of your own.

Parts of your own are modules outside Regard that add a score, a kind of position or a task. Such a
module is imported only when somebody names it: `--import my_parts.py`, `regard.use`, or a plain
import. A run records which modules it needs; they are never imported because a run says so.
"""

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module, resources
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from regard.base.budgets import parse_json
from regard.base.errors import RunError, SettingsError
from regard.base.files import write_json
from regard.settings.recipe import Recipe, require_known

PARTS = "parts.json"
GROUP = "regard.parts"
LONGEST_RECORD = 10_000


def recipe_names() -> list[str]:
    """Return the names of the shipped recipes."""
    files = resources.files("regard.runs").joinpath("recipes").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def shipped_recipe(name: str) -> str:
    """Return the TOML text of a shipped recipe."""
    require_known(name, recipe_names(), what="recipe (a shipped name, or a path ending in .toml):")
    return resources.files("regard.runs").joinpath("recipes", f"{name}.toml").read_text("utf-8")


def use(name: str | Path) -> ModuleType:
    """Import a module with parts of your own, which it registers; return the module.

    `name` is a Python file, an entry point of the group `regard.parts`, or a module.
    """
    text = str(name)
    if text.endswith(".py"):
        return _from_file(Path(text))
    found = {point.name: point for point in entry_points(group=GROUP)}
    try:
        return import_module(found[text].module if text in found else text)
    except ImportError as error:
        raise SettingsError(
            f"--import {text}: {error}. Name a Python file (ending in .py), a module that is "
            f"installed, or an entry point of the group {GROUP}."
        ) from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise SettingsError(f"--import {path}: there is no such file.")
    known = sys.modules.get(path.stem)
    if known is not None:
        where = getattr(known, "__file__", None)
        if where is not None and Path(where).resolve() == path.resolve():
            return known
        raise SettingsError(
            f"--import {path}: there is another module named {path.stem!r}. Rename the file."
        )
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SettingsError(f"--import {path}: this is not a Python file.")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[path.stem]
        if isinstance(error, Exception):
            raise SettingsError(
                f"--import {path}: {type(error).__name__}: {error}. Repair the file."
            ) from error
        raise
    return module


def record_parts(folder: Path, recipe: Recipe) -> None:
    """Record in a new run which modules outside Regard its recipe needs, if any."""
    needed: dict[str, list[str]] = {}
    for name, module in _foreign(recipe):
        needed.setdefault(module, []).append(name)
    if needed:
        files = {module: _file_name(module) for module in needed}
        rows = [{"module": m, "file": files[m], "parts": names} for m, names in needed.items()]
        write_json(folder / PARTS, {"version": 1, "needs": rows})


def require_parts(folder: Path) -> None:
    """Refuse a run with a record of modules that have not been imported; say how to give them."""
    path = folder / PARTS
    if path.is_symlink():
        return
    try:
        with path.open(encoding="utf-8") as record:
            rows = parse_json(record.read(LONGEST_RECORD))["needs"]
        wanted = [(str(row["module"]), str(row["file"]), list(row["parts"])) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} is damaged. Restore it, or train again.") from error
    for module, file, names in wanted:
        if module not in sys.modules:
            raise RunError(
                f"The run at {folder} needs the module {module!r} for {', '.join(map(str, names))}."
                f" Give it with --import {file or module}, or in Python regard.use({file!r}). It "
                "is never imported by itself: look at the file first if it is not yours."
            )


def _file_name(module: str) -> str:
    """Return the name of a module's file; its folder is private."""
    found = getattr(sys.modules.get(module), "__file__", None)
    return Path(found).name if found else ""


def _foreign(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield each part of a recipe that is defined outside Regard, and its module."""
    from regard.attention.graph import EDGE_SCORES
    from regard.attention.lookup import POOLINGS
    from regard.attention.positions import POSITIONS
    from regard.attention.scores import SCORES
    from regard.recurrent.cells import CELLS

    if not _ours(type(recipe).__module__):
        yield f"task {getattr(recipe, 'task', '')!r}", type(recipe).__module__
    registries: dict[str, Mapping[str, Any]] = {
        "score": SCORES,
        "positions": POSITIONS,
        "score of edges": EDGE_SCORES,
        "attention over a window": POOLINGS,
        "cell": CELLS,
    }
    names = {value for value in _texts(recipe.model_dump().get("model")) if value}
    for kind, registry in registries.items():
        for name in sorted(names & registry.keys()):
            module = getattr(registry[name], "__module__", "regard")
            if not _ours(module):
                yield f"{kind} {name!r}", module


def _ours(module: str) -> bool:
    return module.partition(".")[0] == "regard"


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
