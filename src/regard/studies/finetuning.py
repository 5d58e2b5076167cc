"""Fine-tuning of a language model, and what its pre-training was worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from regard.base.errors import SettingsError
from regard.runs.display import Display, display_of
from regard.runs.run import Run, TrainedRun
from regard.settings.recipe import expect
from regard.tasks import overrides_of, recipe_with, train
from regard.tasks.planning import LEARNED, choose
from regard.tasks.text_classification import training as classifiers
from regard.tasks.text_classification.data import read_labelled_splits
from regard.tasks.text_classification.model import TrainedTextClassifier, confusion_lines
from regard.tasks.text_classification.settings import TextClassificationRecipe


@dataclass(frozen=True)
class FineTuned:
    """A classifier that begins with a language model and, to compare, one from scratch."""

    trained: Mapping[str, TrainedTextClassifier]
    """By how it began: "pre-trained", and "from scratch" unless that was left out."""

    @property
    def run(self) -> Run:
        """The run of the fine-tuned classifier."""
        return self.trained["pre-trained"].run

    @property
    def model(self) -> Any:
        """The fine-tuned classifier."""
        return self.trained["pre-trained"].model

    def to_dict(self) -> dict[str, Any]:
        """Return where the runs are and their scores, as plain values."""
        return {
            name: {"run": str(one.run.folder), **one.score.to_dict()}
            for name, one in self.trained.items()
        }

    def lines(self) -> list[str]:
        """Return the comparison and the confusion matrix as a person reads them."""
        rows = [f"{'':<14}{'accuracy':>10}{'macro-F1':>10}"]
        for name, one in self.trained.items():
            rows.append(f"{name:<14}{one.score.accuracy:>10.1%}{one.score.macro_f1:>10.3f}")
        return [*rows, *confusion_lines(self.trained["pre-trained"].score)]

    def _repr_html_(self) -> str:
        return self.run._repr_html_()


def finetune(
    run: str | Path,
    data: str | Path,
    *,
    out: str | Path,
    task: str = "classify",
    test: str | Path | None = None,
    scratch: bool = True,
    set: Mapping[str, Any] | Iterable[str] = (),
    progress: bool | Display = True,
) -> FineTuned | TrainedRun:
    """Fine-tune the language model of a run on a file, as `regard.train(start_from=run)` does.

    The task is to "classify" labelled texts, to "continue" with other text, or to "answer" prompts.
    With `scratch`, a classifier is also trained from scratch, into a folder named after `out`, to
    see what the pre-training was worth.
    """
    display, changes = display_of(progress), overrides_of(set)
    folder, out = Path(run), Path(out)
    given = {"train": str(data)} | ({} if test is None else {"test": str(test)})
    if task != "classify":
        if test is not None and task in LEARNED:
            raise SettingsError("--test is for --task classify.")
        return train(
            start_from=folder, task=task, data=given, out=out, set=changes, progress=display
        )
    change = partial(recipe_with, overrides=changes, options={})
    chosen = choose(None, given, start=folder, task=task, change=change, display=display)
    recipe = expect(chosen.recipe, TextClassificationRecipe)
    scratch_folder = out.with_name(f"{out.name}-scratch")
    for place in (out, scratch_folder) if scratch else (out,):
        Run.require_free(place)  # before time is spent on any of them
    splits = read_labelled_splits(recipe.data)
    for note in splits.notes:
        display.note(note)
    for warning in splits.warnings:
        display.note(f"Warning: {warning}")
    train_one = partial(classifiers.train_one, splits=splits, display=display)
    trained = {"pre-trained": train_one(recipe, out, title="pre-trained")}
    if scratch:
        trained["from scratch"] = train_one(
            classifiers.from_scratch(recipe),
            scratch_folder,
            title="from scratch",
            tokenizer_of=folder,
        )
    return FineTuned(trained)
