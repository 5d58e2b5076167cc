"""A run: a folder that is complete in itself.

recipe.toml        how it was made
source.*, target.* the tokenizers, as plain files
evidence.json      the format of these files, and the versions, data and place that it began with
metrics.jsonl      the course of the training
checkpoints/       to continue from
best/              the weights that validation chose
test.json          scores on the test part, with their signatures
report.html        all of it as pictures
examples.txt       a few sentences to try it with
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from regard.base.errors import (
    Interrupted,
    RegardError,
    RunError,
    SettingsError,
    system_problem,
)
from regard.base.files import LOCK, locked, write_file, write_json
from regard.base.protocols import Tokenizer
from regard.runs.catalogue import PARTS, record_parts, require_parts
from regard.runs.evidence import (
    EVIDENCE,
    evidence_of,
    made_by,
    recorded,
    require_format,
    way_back,
)
from regard.settings import recipe as recipes
from regard.text.tokenizers import load_tokenizer
from regard.training.checkpoint import (
    DIVERGED,
    CheckpointStore,
    checkpoint_folders,
    read_state,
    step_of,
)
from regard.training.objective import Limits
from regard.training.progress import MetricsLog, StopSignals, TensorBoardLog

RECIPE = "recipe.toml"


class Run:
    """The files of one run."""

    def __init__(self, folder: Path):
        self.folder = folder

    @staticmethod
    def require_free(folder: Path) -> None:
        """Refuse a folder in which something would be overwritten."""
        if folder.exists() and not folder.is_dir():
            raise RunError(f"{folder} is a file; choose another folder with --out.")
        if (folder / RECIPE).exists():
            raise RunError(
                f"{folder} already holds a run: continue it with `{resume_command(folder)}`, or "
                "choose another folder with --out."
            )
        ours = (LOCK, f".{RECIPE}.")  # a start that was killed may have left these
        if folder.exists() and any(not one.name.startswith(ours) for one in folder.iterdir()):
            raise RunError(f"{folder} is not empty; choose another folder with --out.")

    @classmethod
    def create(cls, folder: Path, recipe: recipes.Recipe) -> Run:
        """Start a run in a new or empty folder; what is there is never overwritten."""
        cls.require_free(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / RECIPE, recipes.recipe_text(recipe))
        write_json(folder / EVIDENCE, made_by())
        record_parts(folder, recipe)
        return cls(folder)

    def discard(self) -> None:
        """Remove a run that has no checkpoint yet, so that its folder can be used again."""
        if self.last_update is None and not (self.folder / DIVERGED).exists():
            shutil.rmtree(self.folder)

    @property
    def last_update(self) -> int | None:
        """The update of the newest checkpoint, of the last seed if there are several."""
        for folder in (self.folder, *sorted(self.folder.glob("seeds/*"), reverse=True)):
            if folders := checkpoint_folders(folder):
                return step_of(folders[-1])
        return None

    @classmethod
    def open(cls, folder: Path) -> Run:
        """Open a run that exists."""
        if not folder.is_dir():
            raise RunError(f"There is no run at {folder}: no such folder.")
        if not (folder / RECIPE).is_file():
            raise RunError(f"There is no run at {folder}: it has no {RECIPE}.")
        if not (folder / RECIPE).stat().st_size:  # or else it would be read as all defaults
            raise RunError(f"{folder / RECIPE} is empty. Restore it, or train again.")
        require_format(folder)
        if (folder / PARTS).is_file():
            require_parts(folder)
        return cls(folder)

    def recipe(self, kind: type[recipes.AnyRecipe]) -> recipes.AnyRecipe:
        """Return the recipe that the run was made with, which must be of this kind."""
        recipes.require_task(self.task, kind)
        found = recipes.validate(self.table, kind, origin=str(self.folder / RECIPE))
        return recipes.with_paths(found, self.path_of)

    def path_of(self, name: str) -> str:
        """Return where a file of the recipe is: names are relative to where the training began."""
        start = self.started_in
        there = start / name
        return str(there) if start != Path.cwd() and there.exists() else name

    @property
    def evidence(self) -> dict[str, Any]:
        """What was recorded when the run began."""
        return recorded(self.folder)

    @property
    def started_in(self) -> Path:
        """The folder in which the training began."""
        way = self.evidence.get("started_in")
        return (self.folder / way).resolve() if isinstance(way, str) else Path.cwd()

    @property
    def task(self) -> str:
        """What the run was trained for."""
        return str(self.table.get("task", "translate"))

    @property
    def table(self) -> dict[str, Any]:
        """The settings of the run as plain values, not validated."""
        return recipes.read_table(self.folder / RECIPE)

    def rewrite(self, recipe: recipes.Recipe) -> None:
        """Record the recipe that a resumed training or a tuned search goes on with."""
        given: dict[str, str] = {}  # paths are kept as they were given
        recipes.with_paths(
            recipes.validate(self.table, type(recipe), origin=RECIPE),
            lambda name: given.setdefault(self.path_of(name), name),
        )
        recipe = recipes.with_paths(recipe, lambda name: given.get(name, name))
        path, text = self.folder / RECIPE, recipes.recipe_text(recipe)
        if path.read_text(encoding="utf-8") != text:
            write_file(path, text)

    def _repr_html_(self) -> str:
        """Show itself in a notebook: what was trained, how it learned and what the test found."""
        from regard.runs.report import run_html

        return run_html(self)

    @property
    def metrics(self) -> Path:
        """The course of the training, a line of JSON a row."""
        return self.folder / "metrics.jsonl"

    def has_tokenizers(self) -> bool:
        """Return whether both tokenizers were written."""
        return all((self.folder / f"{side}.json").is_file() for side in ("source", "target"))

    def save_tokenizers(self, source: Tokenizer, target: Tokenizer) -> None:
        """Write both tokenizers; the source's last file is written last, as a sign of both."""
        target.save(self.folder, "target")
        source.save(self.folder, "source")

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Return the source and the target tokenizer."""
        return load_tokenizer(self.folder, "source"), load_tokenizer(self.folder, "target")

    def weights(self) -> Path:
        """Return the folder of the weights to use: the best, or else the newest checkpoint."""
        for folder in (self.folder / "best", *checkpoint_folders(self.folder)[-1:]):
            if folder.is_dir():
                return folder
        raise RunError(
            f"{self.folder} has no weights yet: its training was stopped before the first "
            f"checkpoint. Continue it with `{resume_command(self.folder)}`."
        )


@dataclass(frozen=True)
class TrainedRun:
    """A finished training of any task: its run and its best model."""

    run: Run
    model: Any

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.run.folder / "report.html"

    def to_dict(self) -> dict[str, Any]:
        """Return where everything is, and the results, as plain values."""
        return {"run": str(self.run.folder), "report": str(self.report)}

    def lines(self) -> list[str]:
        """Return the results as a person reads them."""
        return [f"Run: {self.run.folder}   report: {self.report}"]

    def drawn(self, width: int) -> Any:
        """Return a picture for a terminal of this width; None if there is none."""
        return None

    def next_commands(self) -> list[str]:
        """Return what can be done with the run now."""
        return []

    def _repr_html_(self) -> str:
        return self.run._repr_html_()


# A resumed training may get other limits and be decoded otherwise; the rest is what is trained.
MAY_CHANGE = {"title", "training", "decoding"}


def limits_of(settings: recipes.Settings) -> Limits:
    """Return when to stop, validate and save, of training settings that have all of these keys."""
    return Limits(**{limit.name: getattr(settings, limit.name) for limit in fields(Limits)})


def open_run(folder: Path, recipe: recipes.Recipe, *, resume: bool) -> Run:
    """Return a new run, or with `resume` the one that is there, if it trains the same thing."""
    if not resume:
        return Run.create(folder, recipe)
    run = Run.open(folder)
    before = run.recipe(type(recipe))
    was_absolute, absolute = (recipes.with_paths(one, os.path.abspath) for one in (before, recipe))
    for part in type(recipe).model_fields.keys() - MAY_CHANGE:
        if getattr(was_absolute, part) != getattr(absolute, part):
            raise SettingsError(
                f"The settings under {part!r} differ from those of the run at {folder}: "
                "a resumed training keeps them. Train into another folder to change them."
            )
    for key, effect in type(recipe).kept_on_resume.items():
        was, wanted = (_setting(one, key) for one in (before, recipe))
        if was != wanted:
            shown = was if isinstance(was, str) else recipes.toml_value(was)
            how = f"without {key}" if was is None else f"with --set {key}={shown}"
            raise SettingsError(
                f"The run at {folder} has {key} = {was!r}, not {wanted!r}. It {effect}, so a "
                f"resumed training keeps it. Resume it {how}, or train into another folder."
            )
    run.rewrite(recipe)
    return run


def _setting(recipe: recipes.Recipe, key: str) -> Any:
    """Return the setting of a dotted name, None if the recipe has no such setting."""
    found: Any = recipe
    for name in key.split("."):
        found = getattr(found, name, None)
    return found


@contextmanager
def training_run(folder: Path, recipe: recipes.Recipe, *, resume: bool) -> Iterator[Run]:
    """Open a run to train, which no other process can do at the same time.

    A new one that fails or is stopped before its first checkpoint is removed again. A signal to
    stop becomes an Interrupted that says how to go on, a full disk one sentence.
    """
    if resume:
        Run.open(folder)
    else:
        Run.require_free(folder)
    with _one_sentence(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with StopSignals(at_once=True), locked(folder):
            run = open_run(folder, recipe, resume=resume)
            try:
                yield run
            except KeyboardInterrupt as stop:
                raise _interrupted(run, recipe, stop, new=not resume) from None
            except (RegardError, OSError):
                if not resume:
                    run.discard()
                raise


@contextmanager
def _one_sentence(folder: Path) -> Iterator[None]:
    """Turn what the disk or its permissions refuse into one sentence with a remedy."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{system_problem(error)} What was saved before is whole: go on with "
            f"`{resume_command(folder)}`, or start again if nothing was saved yet."
        ) from error


def _interrupted(
    run: Run, recipe: recipes.Recipe, stop: KeyboardInterrupt, *, new: bool
) -> Interrupted:
    """Return the interruption of a training with the words for it."""
    number = stop.number if isinstance(stop, Interrupted) else signal.SIGINT
    update = getattr(stop, "step", None) or run.last_update
    if update is None and new:
        run.discard()
        kept = "stopped before the first update: nothing is kept"
        return Interrupted(f"{kept}; give the same command to begin again", number=number)
    given = getattr(getattr(recipe, "data", None), "from_memory", False)
    given_model = getattr(recipe, "own_model", False)
    more = ", data=..." * bool(given) + ", model=..." * bool(given_model)
    again = f'regard.train(resume="{run.folder}"{more})' if more else resume_command(run.folder)
    place = "before the first update" if update is None else f"at update {update}"
    return Interrupted(f"stopped {place}; go on with: {again}", number=number, step=update)


def resume_command(folder: Path) -> str:
    """Return the command that goes on with a run."""
    return f"regard train --resume {quoted(folder)}"


def quoted(text: Path | str) -> str:
    """Return a path, or a sentence, as a shell reads it."""
    word = str(text)
    plain = " " in word and not set(word) & set('"$`\\!')
    return f'"{word}"' if plain else shlex.quote(word)


def finish_or_start(folder: Path, recipe: recipes.Recipe) -> Run:
    """Return the run of this recipe in the folder, new if there is none."""
    return open_run(folder, recipe, resume=(folder / RECIPE).exists())


def open_store(run: Run, *, keep: int, fingerprint: str) -> CheckpointStore:
    """Return the run's checkpoints, refusing to go on with other data than it began with."""
    evidence = evidence_of(fingerprint)
    store = CheckpointStore(run.folder, keep=keep, evidence=evidence)
    before = recorded(run.folder)
    data = before.get("data")
    if data is None and store.newest is not None:  # an older run has it in its checkpoints alone
        data = read_state(store.newest).get("data")
    if data not in (None, fingerprint):
        raise RunError(
            f"The data has changed since the run at {run.folder} began: it cannot be resumed "
            "exactly. Restore the data, or train into another folder."
        )
    if "data" not in before:
        record = {**evidence, "started_in": way_back(run.folder), **before}
        write_json(run.folder / EVIDENCE, record)
    return store


def open_records(run: Run, store: CheckpointStore, *, tensorboard: bool = False) -> list[Any]:
    """Return the files that a training writes its course to, cut back to the newest checkpoint."""
    records: list[Any] = [MetricsLog(run.metrics, resume_step=store.step)]
    if tensorboard:
        records.append(TensorBoardLog(run.folder / "tensorboard"))
    return records
