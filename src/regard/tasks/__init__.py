"""The tasks: a folder each, with the same file names in all. This is their one registry.

Adding a task takes a folder whose `__init__` defines `TASK`, and one line in `TASKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.base.errors import SettingsError
from regard.runs.catalogue import shipped_recipe
from regard.settings.recipe import (
    Recipe,
    option_table,
    parse_table,
    read_table,
    recipe_text,
    require_known,
    toml_value,
    validate,
    with_paths,
)
from regard.tasks.looking import LookRequest, View

if TYPE_CHECKING:
    from torch import nn

    from regard.models.inspection import Trace
    from regard.runs.display import Display
    from regard.runs.run import TrainedRun
    from regard.tasks.interventions import Effect
    from regard.tasks.planning import AutoChoice

AUTO = "auto"
# What "auto" chooses among, so that `set` knows its keys.
AUTO_RECIPE = 'model.family = "transformer"'
# The name of a task in recipes, and the module that defines its `TASK`.
TASKS = {
    "translate": "regard.tasks.translation",
    "forecast": "regard.tasks.forecasting",
    "classify-nodes": "regard.tasks.node_classification",
    "language-model": "regard.tasks.language_modelling",
    "classify-text": "regard.tasks.text_classification",
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """All that the program knows of a task. Functions are imported when they are called."""

    schema: type[Recipe]
    """The recipes of the task."""
    train: Callable[..., TrainedRun]
    """(recipe, out, *, title, resume, data, display): train, test and report into a folder."""
    load: Callable[..., Any]
    """Return the best model of a run; it has the network as `model`."""
    build: Callable[[Any], nn.Module]
    """Return the untrained network of a recipe."""
    report: Callable[..., None]
    """(trained, path, *, title): write the HTML report of a training."""
    views: Mapping[str, Callable[[LookRequest], View]]
    """What there is to look at, by name; "map" is shown without further options."""
    trace: Callable[[Any, str], Trace] | None = None
    """Return every value on the way of one input through a loaded model."""
    untrained: Callable[[Any, str], Any] | None = None
    """Return a loaded model with fresh weights that can read this input, to be traced."""
    auto: Callable[..., AutoChoice] | None = None
    """(recipe, data, *, minutes): choose the settings that the recipe leaves open."""
    fine_tune: Callable[..., AutoChoice] | None = None
    """(folder, recipe or None, data, *, change): choose how to go on from a run."""
    takes_model: bool = False
    """Whether `train` and `load` take a `model`: a function of the user that builds the network."""
    store: Callable[..., Sequence[str] | None] | None = None
    """(foreign model, folder): write a model of another program as a run; may return notes."""
    intervene: Callable[..., Effect] | None = None
    """(loaded model, input, request): return the outputs with and without interventions."""


@dataclass(frozen=True)
class LazyFunction:
    """The function at `module:name`, which is imported when it is called."""

    where: str

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the function."""
        module, name = self.where.split(":")
        return getattr(import_module(module), name)(*arguments, **options)


def task_of(name: str, *, origin: str = "") -> Task:
    """Return the task of this name."""
    require_known(name, TASKS, what=f"task in {origin}:" if origin else "task")
    found: Task = import_module(TASKS[name]).TASK
    return found


def validate_recipe(table: Mapping[str, Any], *, origin: str) -> Recipe:
    """Return the recipe of a table, or say which key is wrong and what it could be."""
    task = task_of(str(table.get("task", "translate")), origin=origin)
    return validate(table, task.schema, origin=origin)


def parse_recipe(text: str, *, overrides: Sequence[str] = (), origin: str) -> Recipe:
    """Return the recipe that a TOML text and `key=value` overrides describe."""
    return validate_recipe(parse_table(text, overrides=overrides, origin=origin), origin=origin)


def read_recipe(path: Path, *, overrides: Sequence[str] = ()) -> Recipe:
    """Return the recipe of a TOML file, with `key=value` overrides applied to it."""
    return validate_recipe(read_table(path, overrides=overrides), origin=str(path))


def find_recipe(name: str, *, overrides: Sequence[str] = ()) -> Recipe:
    """Return a shipped recipe by its name, or a user's by its path (which ends in .toml)."""
    if name.endswith(".toml"):
        return read_recipe(Path(name), overrides=overrides)
    return parse_recipe(shipped_recipe(name), overrides=overrides, origin=f"recipe {name}")


def load(
    folder: str | Path,
    *,
    model: Callable[..., nn.Module] | None = None,
    device: str | None = None,
) -> Any:
    """Load the best model of a run: one that translates, generates, classifies or forecasts.

    `model` is the function that built the network, if that was done in Python. `device` is where
    the model computes: "auto", "cpu", "cuda", "cuda:1", "mps" or "xpu"; see docs/devices.md.
    """
    from regard.compute.device import computing_on
    from regard.runs.run import Run

    run = Run.open(Path(folder))
    task = task_of(run.task)
    with computing_on(device):
        return task.load(run.folder, **_given_model(run.task, task, model))


def look_at(request: LookRequest, picture: str | None = None) -> View:
    """Return what a run's model looked at, or say what the run can show instead."""
    from regard.runs.run import Run

    task = Run.open(request.run).task
    views = task_of(task).views
    heads = (request.part, request.layer, request.head) != (None, None, None)
    name = picture or ("heads" if heads and "heads" in views else "map")
    if name not in views:
        known = [f"--{other}" for other in views if other not in ("map", "heads")]
        raise SettingsError(
            f"The run at {request.run} is of the task {task!r} and has no --{name}; it can show "
            f"{', '.join([*known, '--positions', '--curves'])}."
        )
    return views[name](request)


def look(
    run: str | Path, text: str | None = None, *, picture: str | None = None, **where: Any
) -> View:
    """Return what a run's model attends to: as values, and as a picture to save.

    `picture` is one that the task has, as "heads", "word" or "arcs"; `where` are the fields of
    `LookRequest`, as `layer=0` or `word="they"`.

    >>> regard.look("runs/mine", "cats like dogs").save(Path("cats.png"))
    """
    return look_at(LookRequest(run=Path(run), text=text, **where), picture)


def trace(what: str | Path | Recipe, text: str) -> Trace:
    """Return every value on the way of one input through a run, or through a fresh model."""
    if isinstance(what, Recipe):
        return trace_recipe(what, text)
    if Path(what).is_dir():
        return trace_run(Path(what), text)
    return trace_recipe(find_recipe(str(what)), text)


def trace_run(folder: Path, text: str) -> Trace:
    """Trace one input through the best model of a run."""
    from regard.runs.run import Run

    task = Run.open(folder).task
    trace = task_of(task).trace
    if trace is None:
        raise SettingsError(f"A run of the task {task!r} has no trace yet.")
    return trace(load(folder), text)


def trace_recipe(recipe: Recipe, text: str) -> Trace:
    """Trace one input through the untrained model of a recipe."""
    task = task_of(recipe.task)
    if task.trace is None or task.untrained is None:
        raise SettingsError(f"A recipe of the task {recipe.task!r} has no trace: train it first.")
    return task.trace(task.untrained(recipe, text), text)


def train(
    recipe: str | Path | Recipe | None = None,
    *,
    out: str | Path | None = None,
    data: Any = None,
    pair: str | None = None,
    columns: str | int | Sequence[str | int] | None = None,
    built_in: bool = False,
    minutes: int | float | None = None,
    start_from: str | Path | None = None,
    task: str | None = None,
    set: Mapping[str, Any] | Iterable[str] = (),
    model: Callable[..., nn.Module] | None = None,
    resume: bool | str | Path = False,
    device: str | None = None,
    progress: bool | Display = True,
) -> TrainedRun:
    """Train by a recipe, test, and write a report: what `regard train` does.

    `recipe` is the name of a shipped recipe, a .toml file, a recipe, or "auto" for one that suits
    data and minutes. `data` is a file, two files with a sentence a line, a folder, records from
    memory, as (source, target) or (text, label), or a mapping of "train", "valid" and "test" to any
    of these. `pair`, as "en-de", and `columns`, names or numbers from 1, say what to take from the
    files; `built_in` takes the built-in data. `minutes` ends the training after this time.
    `start_from` is a run to fine-tune, whose model and tokenizers are kept; no recipe is needed,
    and the data may also have the parts "mix" and "general_test". `task` is what to learn from a
    language model. `set` changes settings by their dotted names. `model` is a function that builds
    the network from the sizes of the vocabularies. `resume` is a run to go on with; `set` may still
    change its limits. `device` is that of `load`. Ctrl-C and SIGTERM stop a training after the
    running update with a checkpoint; it then raises `Interrupted`, a KeyboardInterrupt.

    >>> trained = regard.train("seq2seq-attention", data="pairs.tsv", minutes=10, out="runs/mine")
    >>> trained.model.translate("cats sleep").text
    >>> trained = regard.train(resume="runs/mine", set={"training.minutes": 20})
    """
    given = dict(locals())  # what another process of the same training has to be given too
    from regard.runs.launched import joined

    with joined(given) as options:
        return _train(**options)


def _train(
    *,
    recipe: str | Path | Recipe | None,
    out: str | Path | None,
    data: Any,
    pair: str | None,
    columns: str | int | Sequence[str | int] | None,
    built_in: bool,
    minutes: int | float | None,
    start_from: str | Path | None,
    task: str | None,
    set: Mapping[str, Any] | Iterable[str],
    model: Callable[..., nn.Module] | None,
    resume: bool | str | Path,
    progress: bool | Display,
    device: str | None,
) -> TrainedRun:
    """Train on one of the processes that train together."""
    from regard.compute.device import computing_on
    from regard.runs.display import display_of

    folder = _folder_to_resume(recipe, out, resume, start=start_from)
    if folder is not None:
        recipe, out, resume, set = _recipe_of_run(folder, overrides_of(set)), folder, True, ()
    if (recipe is None and start_from is None) or out is None:
        raise _missing("a recipe" if recipe is None else "a folder for the run: --out DIR")
    title = folder.name if folder is not None else recipe if isinstance(recipe, str) else None
    if built_in and data is not None:
        raise SettingsError("--data and --built-in exclude each other; choose one.")
    given = {"pair": pair, "columns": columns, "built_in": built_in or None, "minutes": minutes}
    display, overrides = display_of(progress), overrides_of(set)
    change = partial(recipe_with, overrides=overrides, options=given)
    if recipe is not None and recipe != AUTO and start_from is None and task is None:
        recipe = change(recipe)
    else:
        start = None if start_from is None else Path(start_from)
        recipe, data = _chosen(recipe, data, start, task=task, change=change, display=display)
    if model is None:
        require_buildable(recipe)
    kind, title = task_of(recipe.task), recipe.title or title or recipe.task
    options = {"title": title, "data": data, **_given_model(recipe.task, kind, model)}
    with computing_on(device):
        return kind.train(recipe, Path(out), resume=bool(resume), display=display, **options)


def _chosen(
    recipe: str | Path | Recipe | None, data: Any, start: Path | None, **options: Any
) -> tuple[Recipe, Any]:
    """Return a recipe that suits the data or fine-tunes a run, and the data as it was read."""
    from regard.tasks.planning import choose

    found = choose(recipe, data, start=start, **options)
    return found.recipe, found.data


def _missing(what: str) -> SettingsError:
    return SettingsError(
        f"A training needs {what}. To go on with a run: regard train --resume DIR. To fine-tune "
        "one: regard train --from DIR --data FILE --out NEW."
    )


def recipe_with(
    recipe: str | Path | Recipe, overrides: Sequence[str], options: Mapping[str, Any]
) -> Recipe:
    """Return a recipe, or that of a name, with overrides and with options of `train`."""
    if recipe == AUTO:  # what is open is chosen when the data is known
        named = any(override.startswith("task=") for override in overrides)
        text = "" if named else AUTO_RECIPE
        recipe = parse_recipe(text, overrides=overrides, origin=f"recipe {AUTO}")
    elif not isinstance(recipe, Recipe):
        recipe = find_recipe(str(recipe), overrides=overrides)
    elif overrides:
        recipe = _changed(recipe, overrides)
    if any(value is not None for value in options.values()):
        table = option_table(recipe, options)
        recipe = validate_recipe(table, origin="options")
    return recipe


def _folder_to_resume(
    recipe: Any, out: str | Path | None, resume: bool | str | Path, *, start: str | Path | None
) -> Path | None:
    """Return the run whose own recipe is gone on with; None if a recipe is given."""
    if start is not None and resume:
        raise SettingsError("--from begins a training, --resume goes on with one: leave one out.")
    if not isinstance(resume, bool):
        if recipe is not None or out is not None:
            raise SettingsError("resume=DIR goes on with that run alone: give no recipe, no out.")
        return Path(resume)
    if not resume or isinstance(recipe, Recipe) or (recipe is not None and out is not None):
        return None
    if recipe is None and out is None:
        raise SettingsError("Name the run to go on with: regard train --resume DIR.")
    return Path(str(out if recipe is None else recipe))


def _recipe_of_run(folder: Path, overrides: Sequence[str]) -> Recipe:
    """Return the recipe of a run with these changes."""
    from regard.runs.run import RECIPE, Run

    run = Run.open(folder)
    return with_paths(read_recipe(run.folder / RECIPE, overrides=overrides), run.path_of)


def require_buildable(recipe: Recipe) -> None:
    """Refuse names that only the layers know and sizes that no memory has, before data is read."""
    import torch

    from regard.models.sizes import require_memory

    with torch.device("meta"):  # no memory, no arithmetic
        require_memory(task_of(recipe.task).build(recipe))


def _given_model(name: str, task: Task, model: Callable[..., nn.Module] | None) -> dict[str, Any]:
    """Return a user's model as an argument, or refuse it where the task takes none."""
    if model is None:
        return {}
    if not task.takes_model:
        raise SettingsError(f"The task {name!r} takes no model from Python.")
    return {"model": model}


def overrides_of(given: Mapping[str, Any] | Iterable[str]) -> list[str]:
    """Return changes of settings as `key=value`, as the command line has them."""
    if not isinstance(given, Mapping):
        return list(given)
    return [f"{key}={toml_value(value)}" for key, value in given.items()]


def _changed(recipe: Recipe, overrides: Sequence[str]) -> Recipe:
    """Return a recipe with other settings; a key of the built-in data asks for it, as in TOML."""
    data = getattr(recipe, "data", None)
    key = getattr(data, "asks_for_built_in", None)
    table = parse_table(recipe_text(recipe), overrides=overrides, origin="recipe")
    if key and any(override.startswith(f"data.{key}") for override in overrides):
        del table["data"]["built_in"]
    return validate_recipe(table, origin="recipe")
