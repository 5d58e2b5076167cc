"""A model of another program as a run: recognised, read whole, and stored by its task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.base.files import whole_folder
from regard.exchange.formats import ForeignFiles, ForeignModel, find_weights, read_as
from regard.runs.run import Run
from regard.settings.recipe import Recipe, validate
from regard.tasks import task_of


@dataclass(frozen=True)
class ImportedRun:
    """A new run, what it was made from, and what the user should know."""

    run: Run
    task: str
    weights: Path
    format: str
    parameters: int
    notes: tuple[str, ...]
    reads_both_ways: bool = False
    """Whether it is a language model that guesses hidden tokens, and cannot continue a text."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "run": str(self.run.folder),
            "task": self.task,
            "weights": str(self.weights),
            "format": self.format,
            "parameters": self.parameters,
            "notes": list(self.notes),
        }


def import_model(
    path: str | Path,
    *,
    out: str | Path,
    weights: str | Path | None = None,
    languages: tuple[str, str] | None = None,
    data: str | Path | None = None,
) -> ImportedRun:
    """Make a run of a model that another program trained: what `regard import` does.

    `path` is a folder or a file of weights; of several in a folder, `weights` names one.
    `languages` are source and target, for a model of many languages. `data` is the graph of a node
    classifier. Nothing is written unless the whole model is understood.

    >>> regard.import_model("models/en-pt", out="runs/en-pt")
    """
    folder = Path(out)
    Run.require_free(folder)
    file, kind = find_weights(Path(path), weights=None if weights is None else Path(weights))
    found = read_as(kind, ForeignFiles(weights=file, languages=languages))
    store = task_of(found.task).store
    if store is None:
        raise RunError(f"A model for the task {found.task!r} cannot be stored as a run.")
    if data is not None and found.task != "classify-nodes":
        raise SettingsError(f"--data belongs to a node classifier; this model is for {found.task}.")
    given = {} if data is None else {"data": Path(data)}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(folder) as writing:
        more = store(found, writing, **given)
    return ImportedRun(
        run=Run(folder),
        task=found.task,
        weights=file,
        format=kind.name,
        parameters=sum(parameter.numel() for parameter in found.model.parameters()),
        notes=(*found.notes, *(more or ())),
        reads_both_ways=bool(getattr(found.model, "reads_both_ways", False)),
    )


def recipe_of(found: ForeignModel, schema: type[Recipe], **tables: Any) -> Recipe:
    """Return the recipe of a foreign model."""
    table = {"title": "Imported model", **tables, **found.recipe, "model": found.settings}
    return validate(table, schema, origin="the imported model")
